//! What the proxy counts besides the decisions of its fence.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that many tasks change.
#[derive(Debug, Default)]
pub(super) struct Number(AtomicU64);

impl Number {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts and levels of one proxy.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) in_flight: Number,
    pub(super) in_doubt: Number,
    pub(super) waiting: Number,
    pub(super) order_unknown: Number,
    pub(super) unanswered: Number,
}

impl Tally {
    /// As Prometheus reads it.
    pub(super) fn page(&self) -> String {
        let rows = [
            ("fence_proxy_in_flight", "gauge", "requests sent and not answered yet", &self.in_flight),
            ("fence_proxy_in_doubt", "gauge", "requests that keep a resource closed", &self.in_doubt),
            ("fence_proxy_waiting", "gauge", "requests that wait for lower tokens", &self.waiting),
            ("fence_proxy_unanswered_total", "counter", "requests without an answer", &self.unanswered),
            ("fence_proxy_order_unknown_total", "counter", "of these, given up", &self.order_unknown),
        ];
        let one = |(name, kind, help, number): (&str, &str, &str, &Number)| {
            let value = number.value();
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
        };
        rows.map(one).concat()
    }
}
