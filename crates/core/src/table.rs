//! The lock table: the journaled part, changed by facts alone, and the volatile part beside it.

use leasehold_types::{Durability, FencingToken, Generation, Now, Time};

use crate::command::{Request, Ticket};
use crate::event::Event;
use crate::fact::Fact;
use crate::journaled::Journaled;
use crate::reply::Reply;

/// What a table must know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What the journal keeps: decides which classes may be granted.
    pub durability: Durability,
}

/// What came of a command or of the passing of time.
#[derive(Debug, Default)]
pub struct Decision {
    /// To be journaled, in this order. Already applied.
    pub facts: Vec<Fact>,
    /// To be told once everything decided so far is durable.
    pub replies: Vec<(Ticket, Reply)>,
    /// To be shown once everything decided so far is durable.
    pub events: Vec<(EventAt, Event)>,
    /// The replies also need a confirmation that our epoch is current, begun after the commands arrived (R1).
    pub confirm: bool,
}

/// Which fact of its decision an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventAt {
    /// The fact with this index in [`Decision::facts`].
    Fact(usize),
    /// None: the event is not journaled.
    Nowhere,
}

/// Sizes, for metrics and limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Live leases.
    pub leases: usize,
    /// Live sessions.
    pub sessions: usize,
    /// Waiting acquires.
    pub waiters: usize,
    /// The largest token ever given.
    pub last_token: u64,
    /// The generation.
    pub generation: u64,
}

/// The lock table.
#[derive(Debug)]
pub struct LockTable {}

impl LockTable {
    /// A table over what was journaled, serving from `now` on: every lease has its full ttl again (R2), spread a little
    /// later (N4), or what was last noted of a long one (R6). Nobody waits.
    pub fn restore(journaled: Journaled, settings: Settings, now: Now) -> Self {
        let _ = (journaled, settings, now);
        todo!()
    }

    /// Decides one command. Facts are applied before this returns.
    pub fn decide(&mut self, request: Request, now: Now) -> Decision {
        let _ = (request, now);
        todo!()
    }

    /// Ends what has reached its deadline: leases, sessions, waits, lock delays; notes long leases. Stops after about
    /// `most` facts; call again while [`LockTable::next_deadline`] has come.
    pub fn tick(&mut self, now: Now, most: usize) -> Decision {
        let _ = (now, most);
        todo!()
    }

    /// When [`LockTable::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        todo!()
    }

    /// Says whether the journal has room for grants. Without it acquires and session openings are refused; endings go on.
    pub fn set_room(&mut self, room_for_grants: bool) {
        let _ = room_for_grants;
        todo!()
    }

    /// The journaled part.
    pub fn journaled(&self) -> &Journaled {
        todo!()
    }

    /// Sizes.
    pub fn counts(&self) -> Counts {
        let _ = (FencingToken::new(1), Generation(1));
        todo!()
    }
}
