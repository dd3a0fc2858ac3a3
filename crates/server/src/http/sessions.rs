//! `/v1/sessions`.

use http::HeaderMap;
use hyper::body::Incoming;
use leasehold_api as api;
use leasehold_api::{Problem, Timestamp};
use leasehold_core::{Command, Query as CoreQuery, Reply};
use leasehold_types::SessionId;

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::locks::page_size;
use super::request::{self, Query};
use super::{App, unexpected};

/// `POST /v1/sessions`.
pub(super) async fn open(
    app: &App,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    let key = request::key(headers)?;
    let request: api::OpenSessionRequest = request::json(headers, body, app.limits.body_bytes).await?;
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
pub(super) async fn renew(
    app: &App,
    id: &str,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    let key = request::key(headers)?;
    let session_id = session_id(id)?;
    let request: api::RenewSessionRequest =
        request::json_or_default(headers, body, app.limits.body_bytes).await?;
    let renew = convert::renew_session(session_id, request, &app.limits)?;
    match app.submit(key, Command::RenewSession(renew)).await {
        Ok(Reply::SessionRenewed(renewed)) => Ok(json(&convert::session_renewed(renewed))),
        Ok(other) => unexpected(&other),
        Err(problem) => {
            app.metrics.renewal_failed(problem.code);
            Err(problem.into())
        }
    }
}

/// `GET /v1/sessions/{id}`.
pub(super) async fn show(
    app: &App,
    id: &str,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    request::no_body(&body)?;
    match app.query(CoreQuery::Session(session_id(id)?)).await? {
        Reply::Session(view) => Ok(json(&convert::session(*view))),
        other => unexpected(&other),
    }
}

/// `DELETE /v1/sessions/{id}`; an operator says who and why, and is audited.
pub(super) async fn close(
    app: &App,
    id: &str,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    let query = Query::read(query, &["actorId", "reason"])?;
    let key = request::key(headers)?;
    request::no_body(&body)?;
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
pub(super) async fn list(app: &App, query: Option<&str>, body: Incoming) -> Result<Answer, Failure> {
    let query = Query::read(query, &["pageSize", "cursor"])?;
    request::no_body(&body)?;
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
