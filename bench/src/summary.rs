//! What is kept of several rounds, and how two of them are compared.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Milliseconds.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

impl Latency {
    /// Of latencies in microseconds.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

/// The rounds of one contestant, as they are kept.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Operations a second, round by round.
    pub(crate) rates: Vec<f64>,
    /// Over all rounds.
    pub(crate) latency: Latency,
    /// Of all takes of a lock that many want, those by whoever had it before: they are no operations.
    #[serde(default)]
    pub(crate) taken_again: f64,
}

impl Summary {
    /// The median of the rates.
    pub(crate) fn median(&self) -> f64 {
        median(&self.rates)
    }

    /// The slowest and the fastest round.
    pub(crate) fn spread(&self) -> (f64, f64) {
        spread(&self.rates)
    }

    /// How many times as fast as another that took turns with it.
    pub(crate) fn times(&self, other: &Self) -> Times {
        let by_round: Vec<f64> =
            self.rates.iter().zip(&other.rates).map(|(ours, theirs)| ours / theirs.max(1e-9)).collect();
        Times { of_medians: self.median() / other.median().max(1e-9), spread: spread(&by_round) }
    }
}

/// The ratio of two medians, and the least and the greatest ratio of any one round.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) of_medians: f64,
    pub(crate) spread: (f64, f64),
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of_medians, spread: (least, most) } = self;
        // Small ratios are compared with goals like 0.6 and 1.2.
        let places = if *of_medians < 3.0 { 2 } else { 1 };
        write!(f, "{of_medians:.places$} × ({least:.places$}–{most:.places$})")
    }
}

/// The middle one, or the middle between the two middle ones.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
    }
}

fn spread(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (if least.is_finite() { least } else { 0.0 }, values.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_medians_and_its_spread_of_rounds() {
        let summary = |rates: &[f64]| Summary { rates: rates.to_vec(), ..Summary::default() };
        let times = summary(&[10.0, 30.0, 20.0]).times(&summary(&[10.0, 10.0, 10.0]));
        assert_eq!(times.to_string(), "2.00 × (1.00–3.00)");
    }
}
