//! Following what happens.

use std::sync::Arc;

use leasehold_core::Event;
use leasehold_types::WallTime;

use crate::EventId;

/// Where a watch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchFrom {
    /// With what happens next.
    Now,
    /// Right after this event, which the watcher has seen.
    After(EventId),
}

/// One thing that a watcher is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchItem {
    /// Something happened.
    Event {
        /// Its place in the journal; `None` for what is not journaled and may be missed.
        id: Option<EventId>,
        /// When, for people.
        at: WallTime,
        /// What.
        event: Arc<Event>,
    },
    /// Events after the place asked for are not kept any more; the stream goes on from the oldest kept.
    Compacted {
        /// The oldest journaled event that follows, if one is kept.
        oldest: Option<EventId>,
    },
}

/// The stream is over: the node stopped serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node stopped serving")]
pub struct WatchEnd;

/// A place in the stream of events.
#[derive(Debug)]
pub struct Watch {}

impl Watch {
    /// What happened since the last call, at least one item; waits for it. Cancel-safe: nothing is lost when the future
    /// is dropped.
    ///
    /// # Errors
    /// The node stopped serving; resume at the active node.
    pub async fn next(&mut self) -> Result<Vec<WatchItem>, WatchEnd> {
        todo!()
    }
}
