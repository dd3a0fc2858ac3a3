//! What was decided to be told, waiting for what it rests on.

use std::collections::VecDeque;
use std::ops::Range;

use leasehold_core::{Event, Reply, Ticket};
use leasehold_types::WallTime;

/// What one decision has to tell.
#[derive(Debug)]
pub(super) struct Parcel {
    /// Its own facts, by their place among all decided facts; empty for reads and refusals. It leaves once everything
    /// before the end of this is durable: whatever it may have seen.
    pub(super) facts: Range<u64>,
    /// The first round that may confirm it; 0 if it needs none.
    pub(super) round: u64,
    pub(super) replies: Vec<(Ticket, Reply)>,
    pub(super) live: Vec<(WallTime, Event)>,
}

impl Parcel {
    /// Whether it, or what it tells of, may have happened: facts below `durable` have, those below `in_doubt_to` may
    /// have, later ones have not.
    pub(super) fn is_in_doubt(&self, durable: u64, in_doubt_to: u64) -> bool {
        if self.facts.is_empty() {
            // It changed nothing, but what it says of others (a retry of a grant, say) may have happened.
            return self.facts.end > durable && in_doubt_to > durable;
        }
        self.facts.start < in_doubt_to
    }
}

/// Parcels in the order of decision. They leave in that order alone, so that nobody sees a later state before an
/// earlier one.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    parcels: VecDeque<Parcel>,
    /// The largest round that any parcel here needs: rounds only grow along the queue.
    round_needed: u64,
}

impl Outbox {
    pub(super) fn push(&mut self, parcel: Parcel) {
        self.round_needed = self.round_needed.max(parcel.round);
        self.parcels.push_back(parcel);
    }

    /// The next that may leave.
    pub(super) fn pop(&mut self, durable: u64, confirmed: u64) -> Option<Parcel> {
        let first = self.parcels.front()?;
        if first.facts.end > durable || first.round > confirmed { None } else { self.parcels.pop_front() }
    }

    pub(super) fn round_needed(&self) -> u64 {
        self.round_needed
    }

    pub(super) fn len(&self) -> usize {
        self.parcels.len()
    }

    pub(super) fn into_parcels(self) -> impl Iterator<Item = Parcel> {
        self.parcels.into_iter()
    }
}
