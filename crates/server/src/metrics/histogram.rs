//! A histogram of atomics: counting costs one addition for the bucket and one for the sum.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The upper bounds of a histogram's buckets and the unit that they are counted in.
#[derive(Debug)]
pub(super) struct Scale {
    /// In whole small units, ascending.
    pub(super) bounds: &'static [u64],
    /// How many small units make one unit of the metric.
    pub(super) per_unit: f64,
}

/// From half a millisecond to ten seconds, in microseconds: what a call takes.
pub(super) static CALL: Scale = Scale {
    bounds: &[
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 10_000_000,
    ],
    per_unit: 1e6,
};
/// From ten milliseconds to ten minutes, in milliseconds: how long callers wait in a queue.
pub(super) static WAIT: Scale = Scale {
    bounds: &[10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000],
    per_unit: 1e3,
};
/// From ten milliseconds to a day, in milliseconds: how long leases are held.
pub(super) static HOLD: Scale = Scale {
    bounds: &[10, 100, 1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000],
    per_unit: 1e3,
};
/// Facts of one batch.
pub(super) static BATCH: Scale =
    Scale { bounds: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 1_024, 4_096], per_unit: 1.0 };

/// A histogram.
#[derive(Debug)]
pub(super) struct Histogram {
    scale: &'static Scale,
    /// One more than there are bounds: the last is for everything above.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// An empty one.
    pub(super) fn new(scale: &'static Scale) -> Self {
        let buckets = (0..=scale.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { scale, buckets, sum: AtomicU64::new(0) }
    }

    /// Counts one value, in small units.
    pub(super) fn observe(&self, value: u64) {
        let bucket = self.scale.bounds.partition_point(|&bound| bound < value);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Writes the lines of it; `labels` has no braces.
    pub(super) fn render(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Relaxed);
            let bound = match self.scale.bounds.get(index) {
                Some(&bound) => (bound as f64 / self.scale.per_unit).to_string(),
                None => "+Inf".to_owned(),
            };
            writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}")
                .expect("a string takes everything");
        }
        let sum = self.sum.load(Relaxed) as f64 / self.scale.per_unit;
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(out, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}")
            .expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_their_bounds_inclusive() {
        let histogram = Histogram::new(&BATCH);
        [1, 2, 3, 5_000].into_iter().for_each(|value| histogram.observe(value));
        let mut text = String::new();
        histogram.render(&mut text, "x", "a=\"b\"");
        assert!(text.contains("x_bucket{a=\"b\",le=\"1\"} 1\n"), "{text}");
        assert!(text.contains("x_bucket{a=\"b\",le=\"2\"} 2\n"), "{text}");
        assert!(text.contains("x_bucket{a=\"b\",le=\"4096\"} 3\n"), "{text}");
        assert!(
            text.contains("x_bucket{a=\"b\",le=\"+Inf\"} 4\nx_sum{a=\"b\"} 5006\nx_count{a=\"b\"} 4\n"),
            "{text}"
        );
    }
}
