//! Which lease has or had an id, without a second copy of the ids. An entry has the first four bytes of its id, which
//! decide nearly every comparison, and the place of its record, which decides the rest.
//!
//! Live leases and ended ones stand side by side: an id is looked for once, whatever became of it, and the ending of a
//! lease changes its entry where it stands.
//!
//! Clients draw ids at random, so their first bits say where to look: in a [`Shard`], and there in a bucket of eight, which
//! is one line of a processor's cache. What finds its bucket full stands in an ordinary map. Of ids drawn at random that is one
//! in a hundred; ids that somebody chose to fall into one bucket are all there, and are found as quickly as in any map.
//! Nobody needs ids in their order, and nothing that is visible depends on where one stands.

use std::collections::BTreeMap;

use leasehold_types::LeaseId;

use self::shard::{SHARD_BITS, Shard};
use crate::arena::{Arena, Either, EitherIx};
use crate::lease::{Lease, LeaseIx};
use crate::outcomes::{EndedIx, EndedLease};

mod shard;

/// See the module. Every record that an entry points at must be in the arenas that are given, while it is pointed at.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseIds {
    /// None before the first id.
    shards: Vec<Shard>,
    /// Those whose buckets are full, by their ids as numbers: as long as one is here, its bucket is full.
    crowded: BTreeMap<u128, Record>,
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
        let record = match shard.find(sought.head, |entry| sought.is(&entry)) {
            Some(entry) => Some(entry.record),
            None if shard.is_full_at(sought.head) => self.crowded.get(&sought.number).copied(),
            None => None,
        };
        record.map(Known::of)
    }

    /// This id is looked for soon. Where it stands is not in the processor's cache, and it takes long to fetch; but of many that
    /// are looked at in advance, one right after the other, it fetches several at the same time.
    pub(crate) fn look_ahead(&self, id: LeaseId) {
        let head = head_of(number_of(&id));
        if let Some(shard) = self.shards.get(shard_of(head)) {
            shard.look_ahead(head);
        }
    }

    /// Notes what became of an id, and gives what was known of it. Its record is in the arenas already; the one before it, if any,
    /// still is.
    pub(crate) fn set(&mut self, id: LeaseId, known: Known, records: Records<'_>) -> Option<Known> {
        if self.shards.is_empty() {
            self.shards.resize_with(1 << SHARD_BITS, Shard::default);
        }
        let sought = ById::new(id, records);
        let entry = Entry { head: sought.head, record: known.record() };
        let shard = &mut self.shards[sought.shard()];
        if let Some(former) = shard.replace(entry, |there| sought.is(&there)) {
            return Some(Known::of(former.record));
        }
        if shard.is_full_at(sought.head)
            && let Some(record) = self.crowded.get_mut(&sought.number)
        {
            // It is still one of too many.
            return Some(Known::of(std::mem::replace(record, entry.record)));
        }
        self.resize(sought.shard(), 1, records);
        if !self.shards[sought.shard()].insert(entry) {
            self.crowded.insert(sought.number, entry.record);
        }
        None
    }

    /// Forgets an id, if this is still what is known of it.
    pub(crate) fn remove(&mut self, id: LeaseId, known: Known, records: Records<'_>) {
        let sought = ById::new(id, records);
        let Some(shard) = self.shards.get_mut(sought.shard()) else { return };
        let was_full = shard.is_full_at(sought.head);
        if !shard.remove(sought.head, |entry| entry.record == known.record()) {
            if was_full && self.crowded.get(&sought.number) == Some(&known.record()) {
                self.crowded.remove(&sought.number);
            }
            return;
        }
        if was_full {
            let bucket = shard.bucket_of(sought.head);
            self.fill(sought.shard(), bucket);
        }
        self.resize(sought.shard(), 0, records);
    }

    /// Gives a shard as many buckets as suit what it has, with so many to come.
    fn resize(&mut self, number: usize, to_come: usize, records: Records<'_>) {
        let Some(too_many) = self.shards[number].resize(to_come) else { return };
        let too_many = too_many.into_iter().map(|entry| (number_of(&records.id_of(&entry)), entry.record));
        self.crowded.extend(too_many);
        for bucket in 0..self.shards[number].buckets() {
            self.fill(number, bucket);
        }
    }

    /// Takes back into a bucket what stands elsewhere only because it was full.
    fn fill(&mut self, number: usize, bucket: usize) {
        let shard = &mut self.shards[number];
        while !self.crowded.is_empty() && !shard.is_full(bucket) {
            let lowest = u128::from(shard.lowest_head(number, bucket)) << 96;
            let Some((&id, &record)) = self.crowded.range(lowest..).next() else { return };
            let entry = Entry { head: head_of(id), record };
            if shard_of(entry.head) != number || shard.bucket_of(entry.head) != bucket {
                return;
            }
            self.crowded.remove(&id);
            shard.insert(entry);
        }
    }
}

impl Records<'_> {
    fn id_of(&self, entry: &Entry) -> LeaseId {
        match Known::of(entry.record) {
            Known::Live(ix) => self.leases.get(ix).id,
            Known::Ended(ix) => self.ended.get(ix).id,
        }
    }
}

impl Known {
    fn of(record: Record) -> Self {
        match record.get() {
            Either::First(ix) => Self::Live(ix),
            Either::Second(ix) => Self::Ended(ix),
        }
    }

    fn record(self) -> Record {
        match self {
            Self::Live(ix) => EitherIx::first(ix),
            Self::Ended(ix) => EitherIx::second(ix),
        }
    }
}

/// The first bits of an id.
fn shard_of(head: u32) -> usize {
    (head >> (u32::BITS - SHARD_BITS)) as usize
}

/// An id that is looked for.
struct ById<'a> {
    number: u128,
    head: u32,
    records: Records<'a>,
}

impl<'a> ById<'a> {
    fn new(id: LeaseId, records: Records<'a>) -> Self {
        let number = number_of(&id);
        Self { number, head: head_of(number), records }
    }

    fn shard(&self) -> usize {
        shard_of(self.head)
    }

    /// Whether this entry, which has its head, is its own.
    fn is(&self, entry: &Entry) -> bool {
        number_of(&self.records.id_of(entry)) == self.number
    }
}

/// An id as a number: its first bytes count most.
fn number_of(id: &LeaseId) -> u128 {
    u128::from_be_bytes(*id.as_bytes())
}

fn head_of(number: u128) -> u32 {
    (number >> 96) as u32
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
            let is_full = |head: u32| ids.shards[shard_of(head)].is_full_at(head);
            prop_assert!(ids.crowded.keys().all(|id| is_full(head_of(*id))));
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
