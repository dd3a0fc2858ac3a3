//! What one turn gave, and what many gave together.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Operations and latencies of one turn.
pub(crate) struct Measured {
    /// Microseconds.
    latency: Histogram<u64>,
    operations: u64,
    pub(crate) took: Duration,
}

impl Measured {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are valid");
        Self { latency, operations: 0, took: Duration::ZERO }
    }

    /// One operation more.
    pub(crate) fn note(&mut self, took: Duration) {
        self.latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.operations += 1;
    }

    /// One operation more whose latency is not of interest.
    pub(crate) fn count(&mut self) {
        self.operations += 1;
    }

    /// Another client's part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency).expect("all have the same bounds");
        self.operations += other.operations;
    }

    /// Operations a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.operations as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// Milliseconds at a quantile.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1_000.0
    }
}

/// The rounds of one contestant in one contest.
pub(crate) struct Rounds {
    rates: Vec<f64>,
    latency: Histogram<u64>,
}

impl Rounds {
    /// No round yet.
    pub(crate) fn new() -> Self {
        Self { rates: Vec::new(), latency: Measured::new().latency }
    }

    /// One round more.
    pub(crate) fn add(&mut self, turn: &Measured) {
        self.rates.push(turn.per_second());
        self.latency.add(&turn.latency).expect("all have the same bounds");
    }

    /// One round more of which the rate alone is known.
    pub(crate) fn add_rate(&mut self, per_second: f64) {
        self.rates.push(per_second);
    }

    /// The median of the rates.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.rates.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            len if len % 2 == 1 => sorted[len / 2],
            len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
        }
    }

    /// The slowest and the fastest round.
    pub(crate) fn spread(&self) -> (f64, f64) {
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        (if least.is_finite() { least } else { 0.0 }, self.rates.iter().copied().fold(0.0, f64::max))
    }

    /// Milliseconds at a quantile, over all rounds.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1_000.0
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
        assert!((rounds.median() - 25.0).abs() < 0.01);
        assert!((rounds.spread().1 - 1_000.0).abs() < 0.01);
        assert!((rounds.latency_ms(0.5) - 2.0).abs() < 0.01);
    }
}
