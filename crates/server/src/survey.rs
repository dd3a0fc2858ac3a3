//! A look at the live leases for metrics that are about the worst of them.

use leasehold_core::{Command, LockFilter, Query, Reply};
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

/// Looks. A node that does not answer gives an empty survey: metrics are wanted most when something is wrong.
pub(crate) async fn survey(handle: &Handle, tenant: &TenantName) -> Survey {
    let mut survey = Survey::default();
    let mut cursor = None;
    for _ in 0..PAGES {
        let filter = LockFilter { cursor, page_size: limits::PAGE_SIZE, ..LockFilter::default() };
        let command = Command::Query(Query::Locks(filter));
        let call = Call { tenant: tenant.clone(), identity: None, key: None, command };
        let Ok(durable) = handle.submit(call).await else { break };
        let Reply::Locks(page) = durable.into_inner() else { break };
        for lease in page.locks {
            let unrenewed_ms = lease.ttl_ms.saturating_sub(lease.remaining_ms);
            survey.longest_held_ms = survey.longest_held_ms.max(lease.held_ms);
            survey.renewal_age_ratio =
                survey.renewal_age_ratio.max(unrenewed_ms as f64 / lease.ttl_ms.max(1) as f64);
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    survey
}
