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
use leasehold_core::{Acquire, Event, RenewalReport, Reply};
use leasehold_types::{Mode, ResourceName, TenantName};
use tokio::time::Instant;

use crate::config::PolicyBook;
use crate::logs::LogSink;
use histogram::{BATCH, CALL, Histogram};
pub(crate) use scope::Scope;
use scope::{Prefix, Scopes};
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
    /// It was decided, and that is known at this time. Waiting ones are not counted as latency, and when they queued they
    /// were counted as contended.
    pub(crate) fn ends(self, reply: &Result<Reply, Problem>, now: Instant) {
        if let Some(scope) = self.scope
            && !self.waits
        {
            scope.latency.observe(micros(now.saturating_duration_since(self.begun)));
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

    /// An acquire begins. `last` is the scope of the one before it, of those that come together.
    pub(crate) fn acquire_begins(
        &self,
        tenant: &TenantName,
        acquire: &Acquire,
        now: Instant,
        last: &mut Option<Arc<Scope>>,
    ) -> Attempt {
        let mode = acquire.sharing.mode();
        let scope = self.counts.then(|| {
            self.policies.with(|policies| {
                let prefix = Prefix::of(acquire.resource.as_str(), policies);
                Arc::clone(self.scopes.of_many(last, tenant.as_str(), prefix))
            })
        });
        if let Some(scope) = &scope {
            scope.attempts.add(mode);
        }
        Attempt { scope, mode, waits: acquire.wait_ms > 0, begun: now }
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
        let scope = self.scope(tenant.as_str(), resource.as_str());
        scope.dual_owner_suspected.fetch_add(1, Relaxed);
    }

    /// Where a name is counted.
    fn scope(&self, tenant: &str, name: &str) -> Arc<Scope> {
        self.policies.with(|policies| self.scopes.of(tenant, Prefix::of(name, policies)))
    }

    /// Counts what happened. Most of what comes together is of one tenant and prefix, whose scope is then looked up once.
    pub(crate) fn events<'a>(&self, events: impl Iterator<Item = &'a Event>) {
        if !self.counts {
            return;
        }
        self.policies.with(|policies| {
            let mut last = None;
            for event in events {
                let (tenant, name) = event.resource.parts();
                self.scopes.of_many(&mut last, tenant, Prefix::of(name, policies)).count(event);
            }
        });
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

#[cfg(test)]
mod tests {
    use leasehold_core::EventKind;
    use leasehold_types::{LeaseId, OwnerId, ResourceKey};

    use super::*;

    fn granted(tenant: &str, name: &str) -> Event {
        let (tenant, name) = (TenantName::new(tenant).unwrap(), ResourceName::new(name).unwrap());
        Event {
            kind: EventKind::Granted { waited_ms: 0 },
            resource: ResourceKey::new(&tenant, &name),
            owner: OwnerId::new("worker").unwrap(),
            lease_id: LeaseId::from_bytes([1; 16]),
            token: None,
            mode: Mode::Exclusive,
            permit: None,
            ttl_ms: 15_000,
            session: None,
        }
    }

    #[test]
    fn each_event_of_a_commit_is_counted_under_its_own_tenant_and_prefix() {
        let metrics = Metrics::new(true, PolicyBook::default(), LogSink::none());
        let commit = [("a", "x/1"), ("a", "x/2"), ("a", "y/1"), ("b", "y/1"), ("a", "x/3")]
            .map(|(t, n)| granted(t, n));
        metrics.events(commit.iter());
        let counted = |tenant: &str, name: &str| metrics.scope(tenant, name).granted.load(Mode::Exclusive);
        let seen = [counted("a", "x/9"), counted("a", "y/9"), counted("b", "y/9"), counted("b", "x/9")];
        assert_eq!(seen, [3, 1, 1, 0]);
    }
}
