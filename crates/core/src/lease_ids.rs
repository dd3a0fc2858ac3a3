//! Which lease has or had an id: in the order of ids, without a second copy of them. An entry has the first four bytes
//! of its id, which decide nearly every comparison, and the place of its record, which decides the rest.
//!
//! Live leases and ended ones stand in the same order: an id is looked for once, whatever became of it, and the ending
//! of a lease changes its entry where it stands.
//!
//! The order is cut into [`SHARDS`] by the first bits of an id. Clients draw ids at random, so each has its part of them,
//! and the right one is found without a search. Ids that somebody chose to fall into one shard are searched for in an order
//! like any other.

use std::cmp::Ordering;

use leasehold_types::LeaseId;

use crate::arena::{Arena, Either, EitherIx};
use crate::blocks::{Blocks, Sought};
use crate::lease::{Lease, LeaseIx};
use crate::outcomes::{EndedIx, EndedLease};

/// See the module. Every record that an entry points at must be in the arenas that are given, while it is pointed at.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseIds {
    /// None before the first id.
    shards: Vec<Blocks<Entry, LeaseId>>,
}

/// With as many outcomes as a tenant may have a shard is about one block.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 10;

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

#[derive(Clone, Copy, Debug)]
struct Entry {
    head: u32,
    record: EitherIx<Lease, EndedLease>,
}

impl LeaseIds {
    /// How many there are, live and ended.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(Blocks::len).sum()
    }

    pub(crate) fn get(&self, id: LeaseId, records: Records<'_>) -> Option<Known> {
        let sought = ById::new(id, records);
        self.shards.get(sought.shard())?.get(&sought).map(Entry::known)
    }

    /// Notes what became of an id. Its record is in the arenas already; the one before it, if any, still is.
    pub(crate) fn set(&mut self, id: LeaseId, known: Known, records: Records<'_>) {
        let sought = ById::new(id, records);
        let entry = Entry::new(sought.head, known);
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Blocks::default);
        }
        self.shards[sought.shard()].set(&sought, entry);
    }

    /// Forgets an id, if this is still what is known of it.
    pub(crate) fn remove(&mut self, id: LeaseId, known: Known, records: Records<'_>) {
        let sought = ById::new(id, records);
        let Some(shard) = self.shards.get_mut(sought.shard()) else { return };
        if shard.get(&sought).map(Entry::known) == Some(known) {
            shard.remove(&sought);
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
        (self.head >> (u32::BITS - SHARD_BITS)) as usize
    }
}

/// Ids are ordered by their bytes, the first counting most.
fn number_of(id: &LeaseId) -> u128 {
    u128::from_be_bytes(*id.as_bytes())
}

impl Sought<Entry> for ById<'_> {
    type Bound = LeaseId;

    fn bound_of(&self, entry: &Entry) -> LeaseId {
        match entry.known() {
            Known::Live(ix) => self.records.leases.get(ix).id,
            Known::Ended(ix) => self.records.ended.get(ix).id,
        }
    }

    fn order_of_bound(&self, bound: &LeaseId) -> Ordering {
        number_of(bound).cmp(&self.number)
    }

    fn order_of(&self, entry: &Entry) -> Ordering {
        entry.head.cmp(&self.head).then_with(|| number_of(&self.bound_of(entry)).cmp(&self.number))
    }

    /// By heads first: no record is looked at, and there is no branch that a processor would have to guess.
    fn place_in(&self, entries: &[Entry]) -> Result<usize, usize> {
        let first = entries.partition_point(|entry| entry.head < self.head);
        if entries.get(first).is_none_or(|entry| entry.head != self.head) {
            return Err(first);
        }
        let place = entries[first..].binary_search_by(|entry| self.order_of(entry));
        place.map(|place| first + place).map_err(|place| first + place)
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::{EndReason, TenantName};

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
}
