//! What happened, made once for a commit and shared by everybody who is told.

use std::ops::Deref;
use std::sync::Arc;

use leasehold_core::Event;
use leasehold_types::{Slot, WallTime};

use crate::EventId;

/// One event with its place and time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    /// Its place in the journal; `None` for what is not journaled (queued, renewed).
    pub id: Option<EventId>,
    /// When, for people.
    pub at: WallTime,
    /// What.
    pub event: Event,
}

/// The journaled events of a slot, numbered in their order.
pub(crate) fn of_slot(slot: Slot, events: Vec<(WallTime, Event)>) -> Arc<[Happened]> {
    let numbered = (0..).zip(events);
    numbered.map(|(n, (at, event))| Happened { id: Some(EventId { slot, n }), at, event }).collect()
}

/// One event of a commit, without a copy of it.
#[derive(Clone)]
pub struct SharedEvent {
    commit: Arc<[Happened]>,
    n: usize,
}

impl SharedEvent {
    pub(crate) fn new(commit: &Arc<[Happened]>, n: usize) -> Self {
        debug_assert!(n < commit.len(), "an event of this commit");
        Self { commit: Arc::clone(commit), n }
    }
}

impl Deref for SharedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.commit[self.n].event
    }
}

impl PartialEq for SharedEvent {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedEvent {}

impl std::fmt::Debug for SharedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
