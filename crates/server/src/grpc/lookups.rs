//! Reads for operators: sessions and the audit log.

use leasehold_api::Problem;
use leasehold_core::{AuditEntry, Query, Reply, SessionView};
use leasehold_proto::v1 as pb;

use super::convert;
use crate::http::{App, unexpected};

pub(super) async fn session(
    app: &App,
    request: &pb::GetSessionRequest,
) -> Result<pb::SessionRecord, Problem> {
    match app.query(Query::Session(convert::session_id(&request.session_id)?)).await? {
        Reply::Session(view) => Ok(session_record(*view)),
        other => unexpected(&other),
    }
}

pub(super) async fn sessions(
    app: &App,
    request: &pb::ListSessionsRequest,
) -> Result<pb::SessionsPage, Problem> {
    let after = convert::given(&request.after).map(convert::session_id).transpose()?;
    match app.query(Query::Sessions { after, page_size: convert::page_size(request.page_size) }).await? {
        Reply::Sessions { sessions, next } => Ok(pb::SessionsPage {
            sessions: sessions.into_iter().map(session_record).collect(),
            next_after: next.map(|id| id.to_string()).unwrap_or_default(),
        }),
        other => unexpected(&other),
    }
}

fn session_record(view: SessionView) -> pb::SessionRecord {
    pb::SessionRecord {
        session_id: view.session_id.to_string(),
        owner_id: view.owner.as_str().to_owned(),
        ttl_ms: view.ttl_ms,
        created_at_ms: view.created_at.0,
        expires_at_ms: view.expires_at.0,
        remaining_ms: view.remaining_ms,
        lock_count: view.lock_count as u64,
        labels: convert::told_labels(&view.labels),
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from).unwrap_or_default(),
        max_gap_ms: view.max_gap_ms,
    }
}

pub(super) async fn audit(app: &App, request: &pb::ListAuditRequest) -> Result<pb::AuditPage, Problem> {
    let resource = convert::given(&request.resource).map(convert::resource).transpose()?;
    let page_size = convert::page_size(request.page_size);
    match app.query(app.audit_query(resource, request.after, page_size)).await? {
        Reply::Audit { entries, more } => Ok(pb::AuditPage {
            next_after: entries.last().filter(|_| more).map(|entry| entry.seq),
            entries: entries.into_iter().map(audit_record).collect(),
        }),
        other => unexpected(&other),
    }
}

fn audit_record(entry: AuditEntry) -> pb::AuditRecord {
    pb::AuditRecord {
        seq: entry.seq,
        action: entry.action.as_str().to_owned(),
        resource: entry.resource.map(|key| key.name().to_owned()).unwrap_or_default(),
        tenant: entry.tenant.into(),
        actor_id: entry.actor.into(),
        identity: entry.identity.map(String::from).unwrap_or_default(),
        reason: entry.reason.into(),
        fencing_tokens: entry.tokens,
        created_at_ms: entry.at.0,
        prev_hash: entry.prev_hash.to_vec().into(),
        hash: entry.hash.to_vec().into(),
    }
}

pub(super) async fn verify_audit(app: &App) -> Result<pb::VerifyAuditAnswer, Problem> {
    match app.query(Query::AuditVerify).await? {
        Reply::AuditVerified(verified) => Ok(pb::VerifyAuditAnswer {
            intact: verified.intact,
            entries: verified.entries,
            first_bad: verified.first_bad,
            head: verified.head.to_vec().into(),
        }),
        other => unexpected(&other),
    }
}
