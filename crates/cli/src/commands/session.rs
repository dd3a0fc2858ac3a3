//! `session open|renew|ls|end`.

use leasehold_api::{
    CloseSessionAnswer, OpenSessionAnswer, OpenSessionRequest, RenewSessionAnswer, RenewSessionRequest,
    SessionRecord, SessionsPage,
};
use leasehold_types::{Labels, OwnerId, SessionId};
use serde::Serialize;

use crate::client::{Call, Client, with_query};
use crate::duration::{column, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::Operator;

/// Opens a session.
pub(crate) async fn open(
    client: &Client,
    out: &mut Out,
    owner_id: OwnerId,
    ttl_ms: Option<u64>,
    labels: Labels,
) -> Result<Exit, Failure> {
    let request = OpenSessionRequest { owner_id, ttl_ms, ttl_seconds: None, labels };
    let call = Call::post("/v1/sessions", &request, "open another; an unused session ends by itself");
    let answer = client.call(&call).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let opened: OpenSessionAnswer = answer.read()?;
    out.pairs(&[("session", opened.session_id.to_string()), ("ttl", shown(opened.ttl_ms))])?;
    Ok(Exit::Done)
}

/// Renews a session.
pub(crate) async fn renew(client: &Client, out: &mut Out, session_id: SessionId) -> Result<Exit, Failure> {
    let path = format!("/v1/sessions/{session_id}/renew");
    let answer = client.call(&Call::post(path, &RenewSessionRequest::default(), "renew again")).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let renewed: RenewSessionAnswer = answer.read()?;
    out.line(&format!("renewed for {} with {} locks", shown(renewed.ttl_ms), renewed.lock_count))?;
    for lease in &renewed.ended {
        out.line(&format!(
            "ended: {} with token {} ({})",
            lease.resource, lease.fencing_token, lease.reason
        ))?;
    }
    Ok(Exit::Done)
}

/// Lists live sessions, all pages.
pub(crate) async fn ls(client: &Client, out: &mut Out) -> Result<Exit, Failure> {
    let mut sessions = Vec::new();
    let mut cursor = None;
    loop {
        let call = Call::get(with_query("/v1/sessions", &[("cursor", cursor)]));
        let page: SessionsPage = client.call(&call).await?.read()?;
        sessions.extend(page.sessions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match out.format() {
        Format::Json => out.json(&Sessions { sessions: &sessions })?,
        Format::Table => {
            let rows: Vec<_> = sessions.iter().map(row).collect();
            out.table(&["SESSION", "OWNER", "LOCKS", "TTL", "LEFT", "MISSED"], &rows)?;
        }
    }
    Ok(Exit::Done)
}

/// All pages together.
#[derive(Serialize)]
struct Sessions<'a> {
    sessions: &'a [SessionRecord],
}

/// Ends a session and frees everything in it.
pub(crate) async fn end(
    client: &Client,
    out: &mut Out,
    session_id: SessionId,
    operator: Option<Operator>,
) -> Result<Exit, Failure> {
    let (actor, reason) = operator.map(|operator| (operator.actor, operator.reason)).unzip();
    let path = with_query(&format!("/v1/sessions/{session_id}"), &[("actorId", actor), ("reason", reason)]);
    let answer = client.call(&Call::delete(path, "end it again; a repeated end is the same one")).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let ended: CloseSessionAnswer = answer.read()?;
    out.line(&format!("ended {} and released {} locks", ended.session_id, ended.released))?;
    Ok(Exit::Done)
}

fn row(session: &SessionRecord) -> Vec<String> {
    vec![
        session.session_id.to_string(),
        session.owner_id.to_string(),
        session.lock_count.to_string(),
        column(session.ttl_ms),
        column(session.remaining_ms),
        session.missed.to_string(),
    ]
}
