//! What the loop tells those who count and log.

use std::sync::Arc;
use std::time::Duration;

use leasehold_types::Epoch;

use crate::{Happened, StopReason};

/// Counts and logs what the loop does.
///
/// Called on the loop's own thread, after the commit: it must never block, wait for a lock that a slow thread can hold,
/// or write to a log that can fill (N9). Every method does nothing by default.
pub trait Observer: Send + Sync + 'static {
    /// This happened, by one commit, and is durable; or it is not journaled, and has no ids.
    fn events(&self, events: &Arc<[Happened]>) {
        let _ = events;
    }

    /// A batch became durable.
    fn committed(&self, facts: usize, bytes: usize, took: Duration) {
        let _ = (facts, bytes, took);
    }

    /// An append or a confirmation had no clear outcome and is being resolved.
    fn unknown_outcome(&self) {}

    /// A restart gave this many leases their full ttl again.
    fn lease_rearmed(&self, n: usize) {
        let _ = n;
    }

    /// This node took the journal over, in this epoch, and serves.
    fn took_over(&self, epoch: Epoch) {
        let _ = epoch;
    }

    /// This node serves no more and is a standby now.
    fn stepped_down(&self, why: &StopReason) {
        let _ = why;
    }

    /// The loop was paused; every deadline moved by this much (N3).
    fn paused(&self, gap: Duration) {
        let _ = gap;
    }

    /// A call was turned away because too much was waiting (N8).
    fn shed(&self) {}

    /// A grant met nobody and was given back (A6).
    fn given_back(&self) {}

    /// A snapshot was installed.
    fn snapshot(&self, slot: u64, bytes: u64, took: Duration) {
        let _ = (slot, bytes, took);
    }

    /// Something beside the loop failed and will be tried again: a snapshot, the witness.
    fn trouble(&self, what: &str, detail: &str) {
        let _ = (what, detail);
    }
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
