//! What clients report of themselves with their renewals.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leasehold_core::RenewalReport;

use super::histogram::{Histogram, WAIT};
use super::page::Page;

/// Sums over all clients, as they reported it: one that repeats a report which was not answered is counted twice.
#[derive(Debug)]
pub(super) struct Reported {
    missed: AtomicU64,
    gaps: Histogram,
    expired_while_executing: AtomicU64,
}

impl Reported {
    pub(super) fn new() -> Self {
        Self {
            missed: AtomicU64::new(0),
            gaps: Histogram::new(&WAIT),
            expired_while_executing: AtomicU64::new(0),
        }
    }

    pub(super) fn renewal(&self, report: &RenewalReport) {
        self.missed.fetch_add(report.missed.into(), Relaxed);
        if report.max_gap_ms > 0 {
            self.gaps.observe(report.max_gap_ms);
        }
    }

    pub(super) fn expired_while_executing(&self, leases: u32) {
        self.expired_while_executing.fetch_add(leases.into(), Relaxed);
    }

    pub(super) fn render(&self, page: &mut Page) {
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
