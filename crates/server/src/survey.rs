//! A look at the live leases for metrics that are about the worst of them.

use leasehold_core::{Command, LeaseView, LockCursor, LockFilter, LocksPage, Query, Reply};
use leasehold_node::{Call, Handle};
use leasehold_types::{TenantName, limits};

/// Pages looked at, so that scraping a table of a million leases stays cheap: the first 50,000 by name.
const PAGES: usize = 50;

/// The worst among the live leases that were looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Survey {
    /// Age of the oldest.
    pub(crate) longest_held_ms: u64,
    /// The largest part of a ttl that has passed since a renewal.
    pub(crate) renewal_age_ratio: f64,
}

/// Looks at the leases of these tenants. A node that does not answer gives an empty survey: metrics are wanted most when
/// something is wrong.
pub(crate) async fn survey(handle: &Handle, tenants: impl IntoIterator<Item = TenantName>) -> Survey {
    let mut survey = Survey::default();
    let mut left = PAGES;
    for tenant in tenants {
        let mut cursor = None;
        while left > 0 {
            left -= 1;
            let Some(page) = look(handle, &tenant, cursor.take()).await else { return survey };
            page.locks.iter().for_each(|lease| survey.note(lease));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    survey
}

async fn look(handle: &Handle, tenant: &TenantName, cursor: Option<LockCursor>) -> Option<LocksPage> {
    let filter = LockFilter { cursor, page_size: limits::PAGE_SIZE, ..LockFilter::default() };
    let command = Command::Query(Query::Locks(filter));
    let call = Call { tenant: tenant.clone(), identity: None, key: None, command };
    match handle.submit(call).await.ok()?.into_inner() {
        Reply::Locks(page) => Some(page),
        _ => None,
    }
}

impl Survey {
    fn note(&mut self, lease: &LeaseView) {
        let unrenewed_ms = lease.ttl_ms.saturating_sub(lease.remaining_ms);
        self.longest_held_ms = self.longest_held_ms.max(lease.held_ms);
        self.renewal_age_ratio = self.renewal_age_ratio.max(unrenewed_ms as f64 / lease.ttl_ms.max(1) as f64);
    }
}
