//! Two holders that both believe: a fence has rejected an old token, or somebody renews a lease whose resource is another's
//! by now.

use std::sync::Arc;

use leasehold_api::Problem;
use leasehold_core::{Command, Query, Reply};
use leasehold_node::Call;
use leasehold_types::{EndReason, FencingToken, LeaseId, ResourceName, TenantName};

use super::{App, outcome};
use crate::metrics::Metrics;

/// How it was noticed, for the log.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// A fence reported it.
    AtAFence,
    /// The old holder asked to go on.
    ByARenewal,
}

impl App {
    /// Counts and logs that an old token was seen alive beside a newer one.
    pub(super) fn suspect(&self, seen: Seen, resource: &ResourceName, old: FencingToken, new: FencingToken) {
        suspect(&self.metrics, &self.tenant, seen, resource, (old, new));
    }

    /// A renewal was refused, of a lease or of a session. If the lease has ended, whoever sent it may be at work beside a
    /// successor: the table is asked, while the answer is on its way.
    pub(crate) fn renewal_refused(&self, lease_id: Option<LeaseId>, problem: &Problem) {
        self.metrics.renewal_failed(&self.tenant, problem.code);
        let Some(lease_id) = lease_id.filter(|_| has_ended(problem)) else { return };
        let (handle, metrics, tenant) = (self.handle.clone(), Arc::clone(&self.metrics), self.tenant.clone());
        let command = Command::Query(Query::Successor(lease_id));
        let call = Call { tenant: tenant.clone(), identity: self.identity(), key: None, command };
        tokio::spawn(async move {
            if let Ok(Reply::Successor(Some(found))) = outcome(handle.submit(call).await) {
                let tokens = (found.ended, found.token);
                suspect(&metrics, &tenant, Seen::ByARenewal, &found.resource, tokens);
            }
        });
    }
}

/// Whoever released it itself is not at work any more, and an id that nobody knows says nothing.
fn has_ended(problem: &Problem) -> bool {
    match problem.reason {
        Some(EndReason::Expired | EndReason::Forced | EndReason::SessionEnded) => true,
        Some(EndReason::Released | EndReason::Unknown) | None => false,
    }
}

fn suspect(
    metrics: &Metrics,
    tenant: &TenantName,
    seen: Seen,
    resource: &ResourceName,
    (old, new): (FencingToken, FencingToken),
) {
    metrics.dual_owner_suspected(tenant, resource);
    tracing::warn!(
        event = "lock_lost_suspected",
        resource = resource.as_str(),
        fencingToken = old.get(),
        highestToken = new.get(),
        "{}: its holder went on after the end of its lease",
        match seen {
            Seen::AtAFence => "a fence rejected a stale token",
            Seen::ByARenewal => "a lease was renewed whose resource another holds",
        }
    );
}
