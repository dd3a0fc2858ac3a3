//! Which lease has or had an id, without a second copy of the ids. An entry has the first four bytes of its id, which
//! decide nearly every comparison, and the place of its record, which decides the rest.
//!
//! Live leases and ended ones stand side by side: an id is looked for once, whatever became of it, and the ending of a
//! lease changes its entry where it stands.
//!
//! Clients draw ids at random, so their first bits say where to look: in a [`Shard`], and there in a bucket of eight, which
//! is one line of a processor's cache. What finds its bucket full stands in an order like any other ([`Blocks`]). Of ids drawn
//! at random that is one in a hundred; ids that somebody chose to fall into one bucket are all there, and are searched for as
//! quickly as names are. Nobody needs ids in their order, and nothing that is visible depends on where one stands.

use std::cmp::Ordering;

use leasehold_types::LeaseId;

use self::shard::{SHARD_BITS, Shard};
use crate::arena::{Arena, Either, EitherIx};
use crate::blocks::{Blocks, Sought};
use crate::lease::{Lease, LeaseIx};
use crate::outcomes::{EndedIx, EndedLease};

mod shard;

/// See the module. Every record that an entry points at must be in the arenas that are given, while it is pointed at.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseIds {
    /// None before the first id.
    shards: Vec<Shard>,
    /// Those whose buckets are full: as long as an id is here, its bucket is.
    crowded: Blocks<Entry, LeaseId>,
}

/// What became of the grant with an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Live(LeaseIx),
    Ended(EndedIx),
}

/// The records of all ids.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    pub(crate) leases: &'a Arena<Lease>,
    pub(crate) ended: &'a Arena<EndedLease>,
}

/// Where the record of an id is.
type Record = EitherIx<Lease, EndedLease>;

#[derive(Clone, Copy, Debug)]
struct Entry {
    head: u32,
    record: Record,
}

impl LeaseIds {
    /// How many there are, live and ended.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum::<usize>() + self.crowded.len()
    }

    pub(crate) fn get(&self, id: LeaseId, records: Records<'_>) -> Option<Known> {
        let sought = ById::new(id, records);
        let shard = self.shards.get(sought.shard())?;
        let entry = match shard.find(sought.head, |entry| sought.is(&entry)) {
            Some(entry) => Some(entry),
            None if shard.is_full_at(sought.head) => self.crowded.get(&sought),
            None => None,
        };
        entry.map(Entry::known)
    }

    /// Notes what became of an id, and gives what was known of it. Its record is in the arenas already; the one before it, if any,
    /// still is.
    pub(crate) fn set(&mut self, id: LeaseId, known: Known, records: Records<'_>) -> Option<Known> {
        if self.shards.is_empty() {
            self.shards.resize_with(1 << SHARD_BITS, Shard::default);
        }
        let sought = ById::new(id, records);
        let entry = Entry::new(sought.head, known);
        let shard = &mut self.shards[sought.shard()];
        if let Some(former) = shard.replace(entry, |there| sought.is(&there)) {
            return Some(former.known());
        }
        if shard.is_full_at(sought.head)
            && let Some(former) = self.crowded.replace(&sought, entry)
        {
            // It is still one of too many.
            return Some(former.known());
        }
        self.resize(sought.shard(), 1, records);
        if !self.shards[sought.shard()].insert(entry) {
            self.crowded.set(&sought, entry);
        }
        None
    }

    /// Forgets an id, if this is still what is known of it.
    pub(crate) fn remove(&mut self, id: LeaseId, known: Known, records: Records<'_>) {
        let sought = ById::new(id, records);
        let Some(shard) = self.shards.get_mut(sought.shard()) else { return };
        let was_full = shard.is_full_at(sought.head);
        if !shard.remove(sought.head, |entry| entry.known() == known) {
            if was_full && self.crowded.get(&sought).map(Entry::known) == Some(known) {
                self.crowded.remove(&sought);
            }
            return;
        }
        if was_full {
            let bucket = shard.bucket_of(sought.head);
            self.fill(sought.shard(), bucket, records);
        }
        self.resize(sought.shard(), 0, records);
    }

    /// Gives a shard as many buckets as suit what it has, with so many to come.
    fn resize(&mut self, number: usize, to_come: usize, records: Records<'_>) {
        let Some(too_many) = self.shards[number].resize(to_come) else { return };
        for entry in too_many {
            let sought = ById::new(records.id_of(&entry), records);
            self.crowded.set(&sought, entry);
        }
        for bucket in 0..self.shards[number].buckets() {
            self.fill(number, bucket, records);
        }
    }

    /// Takes back into a bucket what stands elsewhere only because it was full.
    fn fill(&mut self, number: usize, bucket: usize, records: Records<'_>) {
        let shard = &mut self.shards[number];
        while self.crowded.len() > 0 && !shard.is_full(bucket) {
            let lowest = u128::from(shard.lowest_head(number, bucket)) << 96;
            let from = ById::new(LeaseId::from_bytes(lowest.to_be_bytes()), records);
            let next = self.crowded.iter_from(&from).next();
            let is_of =
                |entry: &Entry| shard_of(entry.head) == number && shard.bucket_of(entry.head) == bucket;
            let Some(entry) = next.filter(is_of) else { return };
            self.crowded.remove(&ById::new(records.id_of(&entry), records));
            shard.insert(entry);
        }
    }
}

impl Records<'_> {
    fn id_of(&self, entry: &Entry) -> LeaseId {
        match entry.known() {
            Known::Live(ix) => self.leases.get(ix).id,
            Known::Ended(ix) => self.ended.get(ix).id,
        }
    }
}

impl Entry {
    fn new(head: u32, known: Known) -> Self {
        let record = match known {
            Known::Live(ix) => EitherIx::first(ix),
            Known::Ended(ix) => EitherIx::second(ix),
        };
        Self { head, record }
    }

    fn known(self) -> Known {
        match self.record.get() {
            Either::First(ix) => Known::Live(ix),
            Either::Second(ix) => Known::Ended(ix),
        }
    }
}

/// The first bits of an id.
fn shard_of(head: u32) -> usize {
    (head >> (u32::BITS - SHARD_BITS)) as usize
}

/// An id that is looked for.
struct ById<'a> {
    /// The id, in the order of ids.
    number: u128,
    head: u32,
    records: Records<'a>,
}

impl<'a> ById<'a> {
    fn new(id: LeaseId, records: Records<'a>) -> Self {
        let number = number_of(&id);
        Self { number, head: (number >> 96) as u32, records }
    }

    fn shard(&self) -> usize {
        shard_of(self.head)
    }

    /// Whether this entry, which has its head, is its own.
    fn is(&self, entry: &Entry) -> bool {
        number_of(&self.records.id_of(entry)) == self.number
    }
}

/// Ids are ordered by their bytes, the first counting most.
fn number_of(id: &LeaseId) -> u128 {
    u128::from_be_bytes(*id.as_bytes())
}

impl Sought<Entry> for ById<'_> {
    type Bound = LeaseId;

    fn bound_of(&self, entry: &Entry) -> LeaseId {
        self.records.id_of(entry)
    }

    fn order_of_bound(&self, bound: &LeaseId) -> Ordering {
        number_of(bound).cmp(&self.number)
    }

    fn order_of(&self, entry: &Entry) -> Ordering {
        entry.head.cmp(&self.head).then_with(|| number_of(&self.bound_of(entry)).cmp(&self.number))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use leasehold_types::{EndReason, TenantName};
    use proptest::prelude::*;

    use super::*;

    fn ended(id: [u8; 16]) -> EndedLease {
        EndedLease {
            id: LeaseId::from_bytes(id),
            tenant: TenantName::default_tenant(),
            reason: EndReason::Unknown,
            max_hold: false,
            principal: None,
            was: None,
        }
    }

    /// Ids that a caller has chosen to look alike: four heads, and the rest in the last byte.
    #[test]
    fn ids_with_the_same_first_bytes_are_told_apart() {
        let (leases, mut records, mut ids) = (Arena::default(), Arena::default(), LeaseIds::default());
        let id = |number: u8| {
            let mut bytes = [number % 4; 16];
            bytes[15] = number;
            bytes
        };
        let mut known = Vec::new();
        for number in (0..=255).rev() {
            let is = Known::Ended(records.insert(ended(id(number))));
            let all = Records { leases: &leases, ended: &records };
            ids.set(LeaseId::from_bytes(id(number)), is, all);
            known.insert(0, is);
        }
        let all = Records { leases: &leases, ended: &records };
        assert_eq!(ids.len(), 256);
        for number in (0..=255).filter(|number| number % 3 == 0) {
            let other = known[(usize::from(number) + 1) % 256];
            ids.remove(LeaseId::from_bytes(id(number)), other, all);
            assert!(ids.get(LeaseId::from_bytes(id(number)), all).is_some(), "it was something else");
            ids.remove(LeaseId::from_bytes(id(number)), known[usize::from(number)], all);
        }
        for number in 0..=255 {
            let found = ids.get(LeaseId::from_bytes(id(number)), all);
            assert_eq!(found, (number % 3 != 0).then(|| known[usize::from(number)]));
        }
    }

    /// Some drawn at random, some chosen to fall into one bucket, some into a few.
    fn any_id() -> impl Strategy<Value = [u8; 16]> {
        let chosen = (0..400u16, 0..3u8).prop_map(|(last, head)| {
            let mut id = [head; 16];
            id[14..].copy_from_slice(&last.to_be_bytes());
            id
        });
        prop_oneof![any::<[u8; 16]>(), chosen.clone(), chosen]
    }

    proptest! {
        #[test]
        fn it_is_a_map_whatever_the_ids_look_like(steps in prop::collection::vec((any_id(), 0u8..3), 0..1_500)) {
            let (leases, mut records, mut ids) = (Arena::default(), Arena::default(), LeaseIds::default());
            let mut model = BTreeMap::new();
            for (id, what) in steps {
                let lease_id = LeaseId::from_bytes(id);
                if what == 0 {
                    let Some((of, is)) = model.range(id..).next().map(|(of, is)| (*of, *is)) else { continue };
                    ids.remove(LeaseId::from_bytes(of), is, Records { leases: &leases, ended: &records });
                    model.remove(&of);
                } else {
                    let is = Known::Ended(records.insert(ended(id)));
                    ids.set(lease_id, is, Records { leases: &leases, ended: &records });
                    model.insert(id, is);
                }
                let all = Records { leases: &leases, ended: &records };
                prop_assert_eq!(ids.get(lease_id, all), model.get(&id).copied());
                prop_assert_eq!(ids.len(), model.len());
            }
            let all = Records { leases: &leases, ended: &records };
            for (id, is) in &model {
                prop_assert_eq!(ids.get(LeaseId::from_bytes(*id), all), Some(*is));
            }
            let crowded: Vec<_> = ids.crowded.iter().collect();
            prop_assert!(crowded.iter().all(|entry| ids.shards[shard_of(entry.head)].is_full_at(entry.head)));
        }
    }

    /// What the module says of ids drawn at random, and of what is left when most are gone.
    #[test]
    fn few_ids_drawn_at_random_are_crowded_and_few_buckets_stay_empty() {
        let (leases, mut records, mut ids) = (Arena::default(), Arena::default(), LeaseIds::default());
        let id = |number: u64| {
            let random = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            LeaseId::from_bytes((random ^ (random >> 61)).to_be_bytes())
        };
        let buckets = |ids: &LeaseIds| ids.shards.iter().map(Shard::buckets).sum::<usize>();
        let mut known = Vec::new();
        for number in 0..100_000 {
            known.push(Known::Ended(records.insert(ended(*id(number).as_bytes()))));
            ids.set(id(number), known[number as usize], Records { leases: &leases, ended: &records });
        }
        assert!(ids.crowded.len() < 2_000, "{} of 100,000", ids.crowded.len());
        assert!(buckets(&ids) < 100_000 / 4 + 1_024, "{} buckets", buckets(&ids));
        for number in 5_000..100_000 {
            let all = Records { leases: &leases, ended: &records };
            ids.remove(id(number), known[number as usize], all);
        }
        assert_eq!(ids.len(), 5_000);
        assert!(buckets(&ids) < 4 * 1_024, "{} buckets", buckets(&ids));
    }
}
