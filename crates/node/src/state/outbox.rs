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
    /// How many of the outbox's replies and events are its own, and were not told yet.
    pub(super) replies: usize,
    pub(super) live: usize,
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

/// One thing to tell.
pub(super) enum News {
    /// An event that is not journaled.
    Live(WallTime, Event),
    Reply(Ticket, Reply),
}

/// Parcels in the order of decision. They leave in that order alone, so that nobody sees a later state before an
/// earlier one. What is in them lies side by side, since nearly every parcel has one reply and nothing else.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    parcels: VecDeque<Parcel>,
    replies: VecDeque<(Ticket, Reply)>,
    live: VecDeque<(WallTime, Event)>,
    /// The largest round that any parcel here needs: rounds only grow along the queue.
    round_needed: u64,
}

impl Outbox {
    /// Adds what a decision has to tell, and leaves both lists empty. Nothing is kept of one that tells nothing.
    pub(super) fn push(
        &mut self,
        facts: Range<u64>,
        round: u64,
        replies: &mut Vec<(Ticket, Reply)>,
        live: &mut Vec<(WallTime, Event)>,
    ) {
        if replies.is_empty() && live.is_empty() {
            return;
        }
        self.round_needed = self.round_needed.max(round);
        self.parcels.push_back(Parcel { facts, round, replies: replies.len(), live: live.len() });
        move_all(replies, &mut self.replies);
        move_all(live, &mut self.live);
    }

    /// Takes the next thing that may be told: of each parcel its events, then its replies.
    pub(super) fn pop(&mut self, durable: u64, confirmed: u64) -> Option<News> {
        let first = self.parcels.front_mut()?;
        if first.facts.end > durable || first.round > confirmed {
            return None;
        }
        let news = if first.live > 0 {
            first.live -= 1;
            self.live.pop_front().map(|(at, event)| News::Live(at, event))
        } else {
            first.replies -= 1;
            self.replies.pop_front().map(|(to, reply)| News::Reply(to, reply))
        };
        if first.live + first.replies == 0 {
            self.parcels.pop_front();
        }
        news
    }

    pub(super) fn round_needed(&self) -> u64 {
        self.round_needed
    }

    pub(super) fn len(&self) -> usize {
        self.parcels.len()
    }

    /// Whom each parcel was to answer.
    pub(super) fn into_tickets(self) -> impl Iterator<Item = (Parcel, Vec<Ticket>)> {
        let mut tickets = self.replies.into_iter().map(|(ticket, _)| ticket);
        self.parcels.into_iter().map(move |parcel| {
            let own = tickets.by_ref().take(parcel.replies).collect();
            (parcel, own)
        })
    }
}

/// Moves everything to the end of a queue. Nearly always that is one thing, for which a drain would cost more than the move.
fn move_all<T>(from: &mut Vec<T>, to: &mut VecDeque<T>) {
    let Some(last) = from.pop() else { return };
    if !from.is_empty() {
        to.extend(from.drain(..));
    }
    to.push_back(last);
}
