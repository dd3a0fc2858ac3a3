//! The page of metrics, subject by subject.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use leasehold_node::{Role, Status};
use leasehold_types::TenantName;

use super::Metrics;
use super::page::Page;
use super::scope::Scope;
use crate::survey::Survey;

impl Metrics {
    /// Everything as text; with `only`, of what tenants do that one's alone.
    pub(crate) fn render(&self, status: &Status, survey: &Survey, only: Option<&TenantName>) -> String {
        let mut page = Page(String::with_capacity(16 * 1024));
        let only = only.map(TenantName::as_str);
        let scopes = self.scopes.all(only);
        acquires(&mut page, &scopes);
        leases(&mut page, &scopes);
        self.troubles.render(only, &mut page);
        present(&mut page, status, survey);
        self.grants(&mut page);
        self.journal(&mut page);
        node(&mut page, status);
        self.process(&mut page);
        page.0
    }

    /// What became of grants without anybody's asking.
    fn grants(&self, page: &mut Page) {
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
    }

    fn journal(&self, page: &mut Page) {
        page.head("journal_commit_seconds", "histogram", "Time to make a batch durable");
        self.commits.render(&mut page.0, "journal_commit_seconds", "");
        page.head("journal_batch_size", "histogram", "Facts in a batch");
        self.batches.render(&mut page.0, "journal_batch_size", "");
        page.count(
            "journal_unknown_total",
            "Appends and confirmations without a clear outcome",
            &self.unknown,
        );
    }

    /// What this process has done and lost.
    fn process(&self, page: &mut Page) {
        page.count("node_takeovers_total", "Journals opened for writing by this process", &self.takeovers);
        page.count("node_shed_total", "Requests turned away because too much was waiting", &self.shed);
        page.one("http_connections", "gauge", "Open connections", self.connections.load(Relaxed) as f64);
        page.one(
            "log_lines_dropped_total",
            "counter",
            "Log lines lost because nobody read them fast enough",
            self.log.dropped() as f64,
        );
    }
}

fn acquires(page: &mut Page, scopes: &[Arc<Scope>]) {
    page.by_mode(scopes, "lock_acquire_attempts_total", "Acquires asked for", |s, mode| {
        s.attempts.load(mode)
    });
    page.by_mode(scopes, "lock_acquire_success_total", "Leases given", |s, mode| s.granted.load(mode));
    page.by_mode(
        scopes,
        "lock_acquire_contended_total",
        "Acquires that met a holder, a waiter or a lock delay",
        |s, mode| s.contended.load(mode),
    );
    page.histograms(
        scopes,
        "lock_acquire_latency_seconds",
        "Time to decide an acquire that does not wait",
        |s| &s.latency,
    );
    page.histograms(
        scopes,
        "lock_wait_seconds",
        "Time in the queue of acquires that were granted after waiting",
        |s| &s.waited,
    );
}

/// How leases lived and ended.
fn leases(page: &mut Page, scopes: &[Arc<Scope>]) {
    page.histograms(scopes, "lock_hold_seconds", "Time between grant and end of a lease", |s| &s.held);
    page.counters(scopes, "lock_renewals_total", "Leases renewed", |s| &s.renewals);
    page.counters(scopes, "lock_expired_total", "Leases whose time ended", |s| &s.expired);
    page.counters(scopes, "lock_force_release_total", "Leases taken away by operators", |s| &s.forced);
    page.counters(
        scopes,
        "lock_dual_owner_suspected_total",
        "Stale tokens seen alive: rejected by a fence that reported it, or renewed while another holds the resource",
        |s| &s.dual_owner_suspected,
    );
}

/// What is there now.
fn present(page: &mut Page, status: &Status, survey: &Survey) {
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
}

fn node(page: &mut Page, status: &Status) {
    page.head("node_role", "gauge", "1 for the role that this node has");
    for role in [Role::Active, Role::Standby] {
        let label = format!("role=\"{}\"", role.as_str());
        page.line("node_role", &label, f64::from(u8::from(status.role == role)));
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
}
