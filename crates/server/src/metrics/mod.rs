//! What is counted, in the text format of Prometheus. Counting is a few atomic additions; names are part of the contract.

mod histogram;
mod page;
mod render;
mod scope;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Acquire, Event, EventKind, RenewalReport, Reply};
use leasehold_types::{EndReason, Mode, ResourceName, TenantName};
use tokio::time::Instant;

use crate::config::PolicyBook;
use crate::logs::LogSink;
use histogram::{BATCH, CALL, Histogram};
use scope::{Prefix, Scope, Scopes};
use trouble::Troubles;

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Whether what happens to locks is counted.
    counts: bool,
    /// Names are counted under the prefix that is declared for them.
    policies: PolicyBook,
    scopes: Scopes,
    troubles: Troubles,
    rearmed: AtomicU64,
    takeovers: AtomicU64,
    shed: AtomicU64,
    given_back: AtomicU64,
    unknown: AtomicU64,
    commits: Histogram,
    batches: Histogram,
    connections: AtomicU64,
    log: LogSink,
}

/// An acquire that is being decided.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Absent where nothing is counted.
    scope: Option<Arc<Scope>>,
    mode: Mode,
    waits: bool,
    begun: Instant,
}

impl Attempt {
    /// It was decided. Waiting ones are not counted as latency, and when they queued they were counted as contended.
    pub(crate) fn ends(self, reply: &Result<Reply, Problem>) {
        if let Some(scope) = self.scope
            && !self.waits
        {
            scope.latency.observe(micros(self.begun.elapsed()));
            if matches!(reply, Ok(Reply::NotGranted(_))) {
                scope.contended.add(self.mode);
            }
        }
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Metrics {
    /// Nothing counted yet; `log` knows how many lines it lost.
    pub(crate) fn new(counts: bool, policies: PolicyBook, log: LogSink) -> Self {
        Self {
            counts,
            policies,
            scopes: Scopes::default(),
            troubles: Troubles::new(),
            rearmed: AtomicU64::new(0),
            takeovers: AtomicU64::new(0),
            shed: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            commits: Histogram::new(&CALL),
            batches: Histogram::new(&BATCH),
            connections: AtomicU64::new(0),
            log,
        }
    }

    pub(crate) fn connection(self: &Arc<Self>) -> OpenConnection {
        self.connections.fetch_add(1, Relaxed);
        OpenConnection(Arc::clone(self))
    }

    pub(crate) fn acquire_begins(&self, tenant: &TenantName, acquire: &Acquire) -> Attempt {
        let mode = acquire.sharing.mode();
        let (name, own) = (acquire.resource.as_str(), acquire.resource.prefix());
        let scope = self.counts.then(|| self.scope(tenant.as_str(), name, own));
        if let Some(scope) = &scope {
            scope.attempts.add(mode);
        }
        Attempt { scope, mode, waits: acquire.wait_ms > 0, begun: Instant::now() }
    }

    pub(crate) fn renewal_failed(&self, tenant: &TenantName, code: ErrorCode) {
        self.troubles.note(tenant.as_str(), |trouble| trouble.renewals.add(code));
    }

    pub(crate) fn release_failed(&self, tenant: &TenantName, code: ErrorCode) {
        self.troubles.note(tenant.as_str(), |trouble| trouble.releases.add(code));
    }

    /// What a client says of its renewals.
    pub(crate) fn renewal_reported(&self, tenant: &TenantName, report: &RenewalReport) {
        if report.missed > 0 || report.max_gap_ms > 0 {
            self.troubles.note(tenant.as_str(), |trouble| trouble.reported(report));
        }
    }

    /// So many leases of a client ended under its hands.
    pub(crate) fn expired_while_executing(&self, tenant: &TenantName, leases: u32) {
        self.troubles.note(tenant.as_str(), |trouble| trouble.expired_while_executing(leases));
    }

    /// An old token was seen alive beside a newer one: two holders believed.
    pub(crate) fn dual_owner_suspected(&self, tenant: &TenantName, resource: &ResourceName) {
        let scope = self.scope(tenant.as_str(), resource.as_str(), resource.prefix());
        scope.dual_owner_suspected.fetch_add(1, Relaxed);
    }

    /// Where a name is counted whose own prefix is `own`.
    fn scope(&self, tenant: &str, name: &str, own: &str) -> Arc<Scope> {
        self.policies.with(|policies| {
            let prefix = policies.prefix_of(name).map_or(Prefix::Own(own), Prefix::Declared);
            self.scopes.of(tenant, prefix)
        })
    }

    pub(crate) fn event(&self, event: &Event) {
        if !self.counts {
            return;
        }
        let resource = &event.resource;
        let scope = self.scope(resource.tenant(), resource.name(), resource.prefix());
        match event.kind {
            EventKind::Granted { waited_ms } => {
                scope.granted.add(event.mode);
                if waited_ms > 0 {
                    scope.waited.observe(waited_ms);
                }
            }
            EventKind::Ended { reason, held_ms, .. } => {
                scope.held.observe(held_ms);
                match reason {
                    EndReason::Expired => drop(scope.expired.fetch_add(1, Relaxed)),
                    EndReason::Forced => drop(scope.forced.fetch_add(1, Relaxed)),
                    EndReason::Released | EndReason::SessionEnded | EndReason::Unknown => {}
                }
            }
            EventKind::Proclaimed => {}
            EventKind::Queued => scope.contended.add(event.mode),
            EventKind::Renewed { .. } => drop(scope.renewals.fetch_add(1, Relaxed)),
        }
    }

    pub(crate) fn committed(&self, facts: usize, took: Duration) {
        if !self.counts {
            return;
        }
        self.commits.observe(micros(took));
        self.batches.observe(facts as u64);
    }

    pub(crate) fn took_over(&self) {
        self.takeovers.fetch_add(1, Relaxed);
    }

    pub(crate) fn rearmed(&self, leases: usize) {
        self.rearmed.fetch_add(leases as u64, Relaxed);
    }

    pub(crate) fn shed(&self) {
        self.shed.fetch_add(1, Relaxed);
    }

    pub(crate) fn given_back(&self) {
        self.given_back.fetch_add(1, Relaxed);
    }

    pub(crate) fn unknown_outcome(&self) {
        self.unknown.fetch_add(1, Relaxed);
    }
}
