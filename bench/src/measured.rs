//! What one turn gave, and what many gave together.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::summary::{Latency, Summary};

/// By whom a lock was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// By another client than the last time: it was handed off.
    FromAnother,
    /// By the client that had just given it back.
    Again,
}

/// Operations and latencies of one turn.
pub(crate) struct Measured {
    /// Microseconds.
    latency: Histogram<u64>,
    operations: u64,
    /// Takes by whoever had the lock before, which are no hand-offs.
    again: u64,
    pub(crate) took: Duration,
}

impl Measured {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are valid");
        Self { latency, operations: 0, again: 0, took: Duration::ZERO }
    }

    /// One operation more.
    pub(crate) fn note(&mut self, took: Duration) {
        self.record(took);
        self.operations += 1;
    }

    fn record(&mut self, took: Duration) {
        self.latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// One operation more whose latency is not of interest.
    pub(crate) fn count(&mut self) {
        self.operations += 1;
    }

    /// A lock that all want was taken.
    pub(crate) fn take(&mut self, waited: Duration, taken: Taken) {
        self.record(waited);
        match taken {
            Taken::FromAnother => self.operations += 1,
            Taken::Again => self.again += 1,
        }
    }

    /// Another client's part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency).expect("all have the same bounds");
        self.operations += other.operations;
        self.again += other.again;
    }

    /// How many.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// Operations a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.operations as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Its latencies.
    pub(crate) fn latency(&self) -> Latency {
        Latency::of(&self.latency)
    }
}

/// The rounds of one contestant in one contest.
pub(crate) struct Rounds {
    rates: Vec<f64>,
    latency: Histogram<u64>,
    operations: u64,
    again: u64,
}

impl Rounds {
    /// No round yet.
    pub(crate) fn new() -> Self {
        Self { rates: Vec::new(), latency: Measured::new().latency, operations: 0, again: 0 }
    }

    /// One round more.
    pub(crate) fn add(&mut self, turn: &Measured) {
        self.rates.push(turn.per_second().round());
        self.latency.add(&turn.latency).expect("all have the same bounds");
        self.operations += turn.operations;
        self.again += turn.again;
    }

    /// What is kept of them.
    pub(crate) fn summary(&self) -> Summary {
        let takes = (self.operations + self.again).max(1);
        let taken_again = self.again as f64 / takes as f64;
        Summary { rates: self.rates.clone(), latency: Latency::of(&self.latency), taken_again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let mut rounds = Rounds::new();
        for operations in [30, 10, 20, 1_000] {
            let mut turn = Measured::new();
            (0..operations).for_each(|_| turn.note(Duration::from_millis(2)));
            turn.took = Duration::from_secs(1);
            rounds.add(&turn);
        }
        let summary = rounds.summary();
        assert!((summary.median() - 25.0).abs() < 0.01);
        assert!((summary.spread().1 - 1_000.0).abs() < 0.01);
        assert!((summary.latency.p50 - 2.0).abs() < 0.01);
    }

    #[test]
    fn a_lock_that_is_taken_again_was_not_handed_off() {
        let (mut turn, mut rounds) = (Measured::new(), Rounds::new());
        for taken in [Taken::FromAnother, Taken::Again, Taken::Again, Taken::Again] {
            turn.take(Duration::from_millis(2), taken);
        }
        turn.took = Duration::from_secs(1);
        rounds.add(&turn);
        let summary = rounds.summary();
        assert!((summary.median() - 1.0).abs() < 0.01);
        assert!((summary.taken_again - 0.75).abs() < 0.01);
    }
}
