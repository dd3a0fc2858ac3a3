//! What went wrong with renewals and releases: as the server refused it, and as clients report it with their renewals.
//!
//! Counted for everybody together and for each tenant alone, under the same names: whoever sees every tenant is shown the
//! sums, anybody else what is its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use leasehold_api::ErrorCode;
use leasehold_core::RenewalReport;

use super::histogram::{Histogram, WAIT};
use super::page::Page;

/// A counter for each error code.
#[derive(Debug)]
pub(super) struct ByCode(pub(super) Vec<AtomicU64>);

impl ByCode {
    fn new() -> Self {
        Self(ErrorCode::ALL.iter().map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn add(&self, code: ErrorCode) {
        self.0[code as usize].fetch_add(1, Relaxed);
    }
}

/// What is counted. A client that repeats a report which was not answered is counted twice.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) renewals: ByCode,
    pub(super) releases: ByCode,
    missed: AtomicU64,
    gaps: Histogram,
    expired_while_executing: AtomicU64,
}

impl Trouble {
    fn new() -> Self {
        Self {
            renewals: ByCode::new(),
            releases: ByCode::new(),
            missed: AtomicU64::new(0),
            gaps: Histogram::new(&WAIT),
            expired_while_executing: AtomicU64::new(0),
        }
    }

    pub(super) fn reported(&self, report: &RenewalReport) {
        self.missed.fetch_add(report.missed.into(), Relaxed);
        if report.max_gap_ms > 0 {
            self.gaps.observe(report.max_gap_ms);
        }
    }

    pub(super) fn expired_while_executing(&self, leases: u32) {
        self.expired_while_executing.fetch_add(leases.into(), Relaxed);
    }

    fn render(&self, page: &mut Page) {
        page.by_code("lock_renewal_failures_total", "Renewals refused or failed", &self.renewals);
        page.by_code("lock_release_failures_total", "Releases refused or failed", &self.releases);
        page.count(
            "lease_renewals_missed_total",
            "Renewals that failed on their way, as clients reported it",
            &self.missed,
        );
        page.head(
            "lease_renewal_gap_seconds",
            "histogram",
            "Longest time between two renewals of a client since its last report",
        );
        self.gaps.render(&mut page.0, "lease_renewal_gap_seconds", "");
        page.count(
            "lease_expired_while_executing_total",
            "Leases whose time ended while their holder was still at work, as clients reported it",
            &self.expired_while_executing,
        );
    }
}

/// Everybody's trouble, and each tenant's. Tenants are as many as an administrator has made.
#[derive(Debug)]
pub(super) struct Troubles {
    all: Trouble,
    tenants: RwLock<HashMap<Box<str>, Arc<Trouble>>>,
}

impl Troubles {
    pub(super) fn new() -> Self {
        Self { all: Trouble::new(), tenants: RwLock::default() }
    }

    /// Counts something of a tenant.
    pub(super) fn note(&self, tenant: &str, count: impl Fn(&Trouble)) {
        count(&self.all);
        count(&self.of(tenant));
    }

    /// What one tenant has, or all have.
    pub(super) fn render(&self, only: Option<&str>, page: &mut Page) {
        match only {
            Some(tenant) => self.of(tenant).render(page),
            None => self.all.render(page),
        }
    }

    fn of(&self, tenant: &str) -> Arc<Trouble> {
        {
            let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(trouble) = tenants.get(tenant) {
                return Arc::clone(trouble);
            }
        }
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tenants.entry(tenant.into()).or_insert_with(|| Arc::new(Trouble::new())))
    }
}
