//! What the loop tells: counted and logged, without ever making it wait (N9).

use std::sync::Arc;
use std::time::Duration;

use leasehold_node::{Happened, Observer, StopReason};
use leasehold_types::Epoch;
use tracing::{info, warn};

use crate::grpc::Losses;
use crate::logs::{LockLevels, LogSink};
use crate::metrics::Metrics;

/// Counts and logs.
pub(crate) struct ServerObserver {
    metrics: Arc<Metrics>,
    losses: Arc<Losses>,
    log: LogSink,
    levels: LockLevels,
}

impl ServerObserver {
    /// Counts into `metrics`, tells `losses` of endings, logs into `log`.
    pub(crate) fn new(metrics: Arc<Metrics>, losses: Arc<Losses>, log: LogSink) -> Self {
        Self { metrics, losses, log, levels: LockLevels::of_subscriber() }
    }
}

impl Observer for ServerObserver {
    fn events(&self, events: &Arc<[Happened]>) {
        self.metrics.events(events.iter().map(|happened| &happened.event));
        for Happened { event, .. } in events.iter() {
            self.losses.event(event);
        }
        self.log.lock_events(events, self.levels);
    }

    fn committed(&self, facts: usize, _bytes: usize, took: Duration) {
        self.metrics.committed(facts, took);
    }

    fn unknown_outcome(&self) {
        self.metrics.unknown_outcome();
        warn!(
            event = "journal_unknown",
            "a commit or confirmation has no clear outcome and is being resolved"
        );
    }

    fn lease_rearmed(&self, n: usize) {
        self.metrics.rearmed(n);
        if n == 0 {
            return;
        }
        info!(event = "leases_rearmed", leases = n, "leases have their full ttl again");
    }

    fn took_over(&self, epoch: Epoch) {
        self.metrics.took_over();
        info!(event = "node_took_over", epoch = epoch.0, "this node is the active one");
    }

    fn stepped_down(&self, why: &StopReason) {
        warn!(event = "node_stepped_down", %why, "this node stands by");
    }

    fn paused(&self, gap: Duration) {
        warn!(
            event = "node_paused",
            gap_ms = gap.as_millis() as u64,
            "the node was paused; every deadline moved by the gap"
        );
    }

    fn shed(&self) {
        self.metrics.shed();
    }

    fn given_back(&self) {
        self.metrics.given_back();
    }

    fn snapshot(&self, slot: u64, bytes: u64, took: Duration) {
        info!(
            event = "snapshot_installed",
            slot,
            bytes,
            took_ms = took.as_millis() as u64,
            "a snapshot was installed"
        );
    }

    fn trouble(&self, what: &str, detail: &str) {
        warn!(
            event = "node_trouble",
            what, detail, "something beside the loop failed and will be tried again"
        );
    }
}
