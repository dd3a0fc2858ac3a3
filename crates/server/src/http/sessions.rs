//! `/v1/sessions`.

use leasehold_api as api;
use leasehold_api::{Problem, Timestamp};
use leasehold_core::{Command, Query as CoreQuery, Reply};
use leasehold_types::SessionId;

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::locks::page_size;
use super::received::Received;
use super::request;
use super::{App, unexpected};

/// `POST /v1/sessions`.
pub(super) async fn open(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let (key, request) = received.change::<api::OpenSessionRequest>().await?;
    let open = convert::open_session(request, &app.limits)?;
    match app.submit(key, Command::OpenSession(open)).await? {
        Reply::SessionOpened(opened) => Ok(json(&api::OpenSessionAnswer {
            session_id: opened.session_id,
            ttl_ms: opened.ttl_ms,
            expires_at: Timestamp(opened.expires_at),
        })),
        other => unexpected(&other),
    }
}

/// `POST /v1/sessions/{id}/renew`.
pub(super) async fn renew(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let session_id = session_id(id)?;
    let (key, request) = received.change_or_default::<api::RenewSessionRequest>().await?;
    let renew = convert::renew_session(session_id, request, &app.limits)?;
    match app.renew(key, Command::RenewSession(renew)).await? {
        Reply::SessionRenewed(renewed) => Ok(json(&convert::session_renewed(renewed))),
        other => unexpected(&other),
    }
}

/// `GET /v1/sessions/{id}`.
pub(super) async fn show(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    match app.query(CoreQuery::Session(session_id(id)?)).await? {
        Reply::Session(view) => Ok(json(&convert::session(*view))),
        other => unexpected(&other),
    }
}

/// `DELETE /v1/sessions/{id}`; an operator says who and why, and is audited.
pub(super) async fn close(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["actorId", "reason"])?;
    let key = received.key()?;
    let by_operator = match (query.text("actorId"), query.text("reason")) {
        (None, None) => None,
        (Some(actor), Some(reason)) => Some(convert::operator(actor, reason)?),
        _ => return Err(bad_field("actorId", "an operator gives actorId and reason, both of them").into()),
    };
    let command = Command::CloseSession { session_id: session_id(id)?, by_operator };
    match app.submit(key, command).await? {
        Reply::SessionClosed { session_id, released } => {
            Ok(json(&api::CloseSessionAnswer { ended: api::Yes, session_id, released }))
        }
        other => unexpected(&other),
    }
}

/// `GET /v1/sessions`.
pub(super) async fn list(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["pageSize", "cursor"])?;
    let question =
        CoreQuery::Sessions { after: query.parsed("cursor", str::parse)?, page_size: page_size(&query)? };
    match app.query(question).await? {
        Reply::Sessions { sessions, next } => Ok(json(&api::SessionsPage {
            sessions: sessions.into_iter().map(convert::session).collect(),
            next_cursor: next.map(|id| id.to_string()),
        })),
        other => unexpected(&other),
    }
}

fn session_id(raw: &str) -> Result<SessionId, Problem> {
    request::path_part("sessionId", raw)?.parse().map_err(|invalid| bad_field("sessionId", invalid))
}
