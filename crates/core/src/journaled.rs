//! The journaled part of the table.
use crate::event::Event;
use crate::fact::Fact;
use leasehold_types::Generation;

/// The part of the table that facts alone change, and that snapshots hold.
#[derive(Clone, Debug, Default)]
pub struct Journaled {}

impl Journaled {
    /// The empty state before the first fact.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one fact and hands out the events it makes, as the live table did.
    pub fn replay(&mut self, fact: &Fact, events: &mut Vec<Event>) {
        let _ = (fact, events);
        todo!()
    }

    /// The largest token ever given, or the floor that a recovery set.
    pub fn last_token(&self) -> u64 {
        todo!()
    }

    /// The generation.
    pub fn generation(&self) -> Generation {
        todo!()
    }
}
