//! `/v1/audit`.

use leasehold_api as api;
use leasehold_core::{Query as CoreQuery, Reply};
use leasehold_types::{ResourceName, limits};

use super::answer::{Answer, Failure, json};
use super::convert::{audit_record, hex};
use super::locks::page_size;
use super::received::Received;
use super::{App, unexpected};

/// `GET /v1/audit`.
pub(super) async fn list(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["resource", "after", "pageSize"])?;
    let resource = query.parsed("resource", ResourceName::new)?;
    let after = query.number("after", 0, limits::TOKEN_MAX)?.unwrap_or(0);
    match app.query(app.audit_query(resource, after, page_size(&query)?)).await? {
        Reply::Audit { entries, more } => {
            let next_after = entries.last().filter(|_| more).map(|entry| entry.seq);
            Ok(json(&api::AuditPage { entries: entries.into_iter().map(audit_record).collect(), next_after }))
        }
        other => unexpected(&other),
    }
}

/// `GET /v1/audit/verify`.
pub(super) async fn verify(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    match app.query(CoreQuery::AuditVerify).await? {
        Reply::AuditVerified(verified) => Ok(json(&api::AuditVerifyAnswer {
            intact: verified.intact,
            entries: verified.entries,
            first_bad: verified.first_bad,
            head: hex(&verified.head),
        })),
        other => unexpected(&other),
    }
}
