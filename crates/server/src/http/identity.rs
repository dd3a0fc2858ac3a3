//! `/v1/identity`.

use leasehold_api as api;
use leasehold_core::{Query as CoreQuery, Reply};

use super::answer::{Answer, Failure, json};
use super::received::Received;
use super::{App, unexpected};
use crate::auth::TenantRoom;

/// `GET /v1/identity`.
pub(super) async fn show(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let (usage, waiters) = match app.query(CoreQuery::Usage).await? {
        Reply::Usage { usage, waiters } => (usage, waiters),
        other => unexpected(&other),
    };
    Ok(json(&api::IdentityAnswer {
        open: app.is_open(),
        name: app.identity().unwrap_or_default().into(),
        tenant: app.tenant.to_string(),
        role: app.role().as_str().to_owned(),
        usage: api::TenantUsage {
            locks: usage.leases,
            sessions: usage.sessions,
            waiters: waiters as u64,
            bytes: usage.bytes,
        },
        quota: quota(app.room()),
    }))
}

fn quota(room: &TenantRoom) -> api::TenantQuota {
    let limit = room.limit();
    let bound = |most: u64| (most != u64::MAX).then_some(most);
    api::TenantQuota {
        locks: bound(limit.quota.leases),
        sessions: bound(limit.quota.sessions),
        waiters: bound(limit.quota.waiters),
        watchers: (limit.watchers != usize::MAX).then_some(limit.watchers as u64),
        bytes: bound(limit.quota.bytes),
        per_second: limit.rate.map(u64::from),
    }
}
