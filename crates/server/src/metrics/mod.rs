//! What is counted, in the text format of Prometheus. Counting is a few atomic additions; names are part of the contract.

mod histogram;
mod page;
mod reported;
mod scope;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Acquire, Event, EventKind, RenewalReport, Reply};
use leasehold_node::{Role, Status};
use leasehold_types::{EndReason, Mode, ResourceName, TenantName};
use tokio::time::Instant;

use crate::config::PolicyBook;
use crate::logs::LogSink;
use crate::survey::Survey;
use histogram::{BATCH, CALL, Histogram};
use page::Page;
use reported::Reported;
use scope::{Prefix, Scope, Scopes};

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Whether what happens to locks is counted.
    counts: bool,
    /// Names are counted under the prefix that is declared for them.
    policies: PolicyBook,
    scopes: Scopes,
    renewal_failures: ByCode,
    release_failures: ByCode,
    reported: Reported,
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

/// A counter for each error code.
#[derive(Debug)]
struct ByCode(Vec<AtomicU64>);

impl ByCode {
    fn new() -> Self {
        Self(ErrorCode::ALL.iter().map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, code: ErrorCode) {
        self.0[code as usize].fetch_add(1, Relaxed);
    }
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
            renewal_failures: ByCode::new(),
            release_failures: ByCode::new(),
            reported: Reported::new(),
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

    pub(crate) fn renewal_failed(&self, code: ErrorCode) {
        self.renewal_failures.add(code);
    }

    /// What a client says of its renewals.
    pub(crate) fn renewal_reported(&self, report: &RenewalReport) {
        self.reported.renewal(report);
    }

    /// So many leases of a client ended under its hands.
    pub(crate) fn expired_while_executing(&self, leases: u32) {
        self.reported.expired_while_executing(leases);
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

    pub(crate) fn release_failed(&self, code: ErrorCode) {
        self.release_failures.add(code);
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

    /// Everything as text.
    pub(crate) fn render(&self, status: &Status, survey: &Survey, only: Option<&TenantName>) -> String {
        let mut page = Page(String::with_capacity(16 * 1024));
        let scopes = self.scopes.all(only.map(TenantName::as_str));
        page.by_mode(&scopes, "lock_acquire_attempts_total", "Acquires asked for", |s, mode| {
            s.attempts.load(mode)
        });
        page.by_mode(&scopes, "lock_acquire_success_total", "Leases given", |s, mode| s.granted.load(mode));
        page.by_mode(
            &scopes,
            "lock_acquire_contended_total",
            "Acquires that met a holder, a waiter or a lock delay",
            |s, mode| s.contended.load(mode),
        );
        page.histograms(
            &scopes,
            "lock_acquire_latency_seconds",
            "Time to decide an acquire that does not wait",
            |s| &s.latency,
        );
        page.histograms(
            &scopes,
            "lock_wait_seconds",
            "Time in the queue of acquires that were granted after waiting",
            |s| &s.waited,
        );
        page.histograms(&scopes, "lock_hold_seconds", "Time between grant and end of a lease", |s| &s.held);
        page.counters(&scopes, "lock_renewals_total", "Leases renewed", |s| &s.renewals);
        page.counters(&scopes, "lock_expired_total", "Leases whose time ended", |s| &s.expired);
        page.counters(&scopes, "lock_force_release_total", "Leases taken away by operators", |s| &s.forced);
        page.counters(
            &scopes,
            "lock_dual_owner_suspected_total",
            "Stale tokens seen alive: rejected by a fence that reported it, or renewed while another holds the resource",
            |s| &s.dual_owner_suspected,
        );
        page.by_code("lock_renewal_failures_total", "Renewals refused or failed", &self.renewal_failures);
        page.by_code("lock_release_failures_total", "Releases refused or failed", &self.release_failures);
        self.reported.render(&mut page);
        page.one(
            "lock_held_longest_seconds",
            "gauge",
            "Age of the oldest live lease, of those looked at",
            survey.longest_held_ms as f64 / 1e3,
        );
        page.one(
            "lease_renewal_age_ratio",
            "gauge",
            "Largest part of its ttl that a live lease has gone without renewal",
            survey.renewal_age_ratio,
        );
        page.one("locks_held", "gauge", "Live leases", status.counts.leases as f64);
        page.one("lock_waiters", "gauge", "Acquires in queues", status.counts.waiters as f64);
        page.one("sessions_open", "gauge", "Live sessions", status.counts.sessions as f64);
        page.count(
            "lease_rearmed_total",
            "Leases that got their full ttl again after a restart or take-over",
            &self.rearmed,
        );
        page.count(
            "lock_grants_unheard_total",
            "Grants given back because the caller was gone",
            &self.given_back,
        );
        page.head("journal_commit_seconds", "histogram", "Time to make a batch durable");
        self.commits.render(&mut page.0, "journal_commit_seconds", "");
        page.head("journal_batch_size", "histogram", "Facts in a batch");
        self.batches.render(&mut page.0, "journal_batch_size", "");
        page.count(
            "journal_unknown_total",
            "Appends and confirmations without a clear outcome",
            &self.unknown,
        );
        page.head("node_role", "gauge", "1 for the role that this node has");
        for role in [Role::Active, Role::Standby] {
            page.line(
                "node_role",
                &format!("role=\"{}\"", role.as_str()),
                f64::from(u8::from(status.role == role)),
            );
        }
        page.one("node_epoch", "gauge", "The epoch in which this node serves", status.epoch.0 as f64);
        page.one(
            "node_generation",
            "gauge",
            "The life of the journal; a recovery raises it",
            status.generation.0 as f64,
        );
        page.one(
            "node_stalled",
            "gauge",
            "1 while commits make no progress, so that renewals are refused",
            f64::from(u8::from(status.stalled)),
        );
        page.one("node_queued", "gauge", "Commands that wait for the loop", status.queued as f64);
        page.count("node_takeovers_total", "Journals opened for writing by this process", &self.takeovers);
        page.count("node_shed_total", "Requests turned away because too much was waiting", &self.shed);
        page.one("http_connections", "gauge", "Open connections", self.connections.load(Relaxed) as f64);
        page.one(
            "log_lines_dropped_total",
            "counter",
            "Log lines lost because nobody read them fast enough",
            self.log.dropped() as f64,
        );
        page.0
    }
}
