//! Counts by size.

/// How often a value was at most so large. The bounds are fixed; the last bucket takes the rest.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// The lines of one series, with these labels.
    pub(super) fn lines(&self, name: &str, labels: &str) -> String {
        let (mut text, mut below) = (String::new(), 0);
        let bounds = self.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&self.counts) {
            below += count;
            text += &format!("{name}_bucket{{{labels},le=\"{bound}\"}} {below}\n");
        }
        text + &format!("{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {below}\n", self.sum)
    }
}
