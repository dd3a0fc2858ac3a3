//! When a call passed the stations of the loop, for whoever wants to know: traces.
//!
//! A call without a trail costs nothing but the question whether it has one. The loop writes a trail on its own thread
//! and never waits for anybody; the caller reads it after its answer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_types::Slot;

/// See the module.
#[derive(Debug, Default)]
pub struct Trail(Mutex<Stations>);

/// What the loop did for one call, by the monotonic clock of the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stations {
    /// When the command was decided, from and to; `None` if it never was.
    pub decided: Option<(Duration, Duration)>,
    /// What the answer waited for last, after the decision; `None` if it waited for nothing.
    pub settled: Option<Settled>,
}

/// A piece of work with the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// The slot that was committed; `None` where the epoch was confirmed alone.
    pub slot: Option<Slot>,
    /// When it began.
    pub began: Duration,
    /// When it was known to be done.
    pub ended: Duration,
}

impl Trail {
    /// What is known so far.
    pub fn stations(&self) -> Stations {
        *self.lock()
    }

    pub(crate) fn decided(&self, from: Duration, to: Duration) {
        self.lock().decided = Some((from, to));
    }

    /// The answer leaves after this work, if that is not older than the decision.
    pub(crate) fn settled(&self, work: Option<Settled>) {
        let mut stations = self.lock();
        let since = stations.decided.map_or(Duration::ZERO, |(from, _)| from);
        stations.settled = work.filter(|work| work.ended >= since);
    }

    fn lock(&self) -> MutexGuard<'_, Stations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_from_before_the_decision_is_not_of_this_call() {
        let at = Duration::from_millis;
        let work = |ended| Some(Settled { slot: Some(Slot(7)), began: at(1), ended: at(ended) });
        let trail = Trail::default();
        trail.decided(at(10), at(11));
        trail.settled(work(9));
        assert_eq!(trail.stations().settled, None);
        trail.settled(work(12));
        assert_eq!(trail.stations(), Stations { decided: Some((at(10), at(11))), settled: work(12) });
    }
}
