//! `/v1/locks`.

use http::HeaderMap;
use hyper::body::Incoming;
use leasehold_api as api;
use leasehold_api::{Problem, Timestamp};
use leasehold_core::{Command, LockCursor, LockFilter, Query as CoreQuery, Reply};
use leasehold_types::{LeaseId, OwnerId, ResourceName, limits};

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::request::{self, Query};
use super::{App, unexpected};

/// `POST /v1/locks/acquire`.
pub(super) async fn acquire(
    app: &App,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    let key = request::key(headers)?;
    let request: api::AcquireRequest = request::json(headers, body, app.limits.body_bytes).await?;
    let acquire = convert::acquire(request, &app.limits)?;
    let attempt = app.metrics.acquire_begins(&app.tenant, &acquire);
    let reply = app.submit(key, Command::Acquire(acquire)).await;
    attempt.ends(&reply);
    match reply? {
        Reply::Granted(grant) => {
            let signed = app.signed(&*grant);
            Ok(json(&convert::granted(*grant, signed)))
        }
        Reply::NotGranted(not) => Ok(json(&convert::not_granted(*not))),
        other => unexpected(&other),
    }
}

/// `POST /v1/locks/{leaseId}/renew`.
pub(super) async fn renew(
    app: &App,
    id: &str,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    let key = request::key(headers)?;
    let lease_id = lease_id(id)?;
    let request: api::RenewRequest = request::json_or_default(headers, body, app.limits.body_bytes).await?;
    let renew = convert::renew(lease_id, request, &app.limits)?;
    match app.submit(key, Command::Renew(renew)).await {
        Ok(Reply::Renewed(renewed)) => Ok(json(&convert::renewed(*renewed, |lock| app.signed(lock)))),
        Ok(other) => unexpected(&other),
        Err(problem) => {
            app.metrics.renewal_failed(problem.code);
            Err(problem.into())
        }
    }
}

/// `DELETE /v1/locks/{leaseId}`.
pub(super) async fn release(
    app: &App,
    id: &str,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    let key = request::key(headers)?;
    request::no_body(&body)?;
    let lease_id = lease_id(id)?;
    match app.submit(key, Command::Release { lease_id }).await {
        Ok(Reply::Released { resource, token }) => {
            app.losses.released(lease_id, resource.as_str(), token);
            Ok(json(&api::ReleaseAnswer { released: api::Yes, resource, fencing_token: token }))
        }
        Ok(other) => unexpected(&other),
        Err(problem) => {
            app.metrics.release_failed(problem.code);
            Err(problem.into())
        }
    }
}

/// `GET /v1/locks/{leaseId}`.
pub(super) async fn show(
    app: &App,
    id: &str,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    request::no_body(&body)?;
    match app.query(CoreQuery::Lease(lease_id(id)?)).await? {
        Reply::Lease(view) => {
            let signed_token = app.signed(&*view);
            Ok(json(&api::LockRecord { signed_token, ..convert::record(*view, true) }))
        }
        other => unexpected(&other),
    }
}

/// `GET /v1/locks`.
pub(super) async fn list(app: &App, query: Option<&str>, body: Incoming) -> Result<Answer, Failure> {
    request::no_body(&body)?;
    match app.query(CoreQuery::Locks(filter(query)?)).await? {
        Reply::Locks(page) => Ok(json(&api::LocksPage {
            locks: page.locks.into_iter().map(|view| convert::record(view, false)).collect(),
            next_cursor: page.next.as_ref().map(write_cursor),
            as_of: Timestamp(page.as_of),
        })),
        other => unexpected(&other),
    }
}

/// How many records a page has when the caller does not say.
const PAGE_DEFAULT: usize = 100;

fn filter(query: Option<&str>) -> Result<LockFilter, Problem> {
    let known = ["prefix", "ownerId", "sessionId", "heldLongerThanMs", "missedAtLeast", "pageSize", "cursor"];
    let query = Query::read(query, &known)?;
    let missed = query.number("missedAtLeast", 0, u32::MAX.into())?;
    Ok(LockFilter {
        prefix: prefix(&query)?,
        owner: query.parsed("ownerId", OwnerId::new)?,
        session: query.parsed("sessionId", str::parse)?,
        held_longer_than_ms: query.number("heldLongerThanMs", 0, limits::TOKEN_MAX)?,
        missed_at_least: missed.map(|n| u32::try_from(n).expect("bounded above")),
        cursor: query.parsed("cursor", read_cursor)?,
        page_size: page_size(&query)?,
    })
}

/// The beginning of a resource name; empty is every name.
pub(super) fn prefix(query: &Query) -> Result<Option<Box<str>>, Problem> {
    match query.text("prefix") {
        Some(text) if text.len() > limits::NAME_BYTES => {
            Err(bad_field("prefix", format_args!("has more than {} bytes", limits::NAME_BYTES)))
        }
        Some(text) => Ok((!text.is_empty()).then(|| text.into())),
        None => Ok(None),
    }
}

/// How many records a page has.
pub(super) fn page_size(query: &Query) -> Result<usize, Problem> {
    let asked = query.number("pageSize", 1, limits::PAGE_SIZE as u64)?;
    Ok(asked.map_or(PAGE_DEFAULT, |n| usize::try_from(n).expect("bounded above")))
}

/// Opaque to callers: token, a dot, name.
fn write_cursor(cursor: &LockCursor) -> String {
    format!("{}.{}", cursor.token, cursor.resource)
}

fn read_cursor(text: &str) -> Result<LockCursor, &'static str> {
    let read = || {
        let (token, resource) = text.split_once('.')?;
        let digits = token.bytes().all(|byte| byte.is_ascii_digit());
        let token = token.parse().ok().filter(|_| digits)?;
        Some(LockCursor { resource: ResourceName::new(resource).ok()?, token })
    };
    read().ok_or("is not one that this service gave out")
}

fn lease_id(raw: &str) -> Result<LeaseId, Problem> {
    request::path_part("leaseId", raw)?.parse().map_err(|invalid| bad_field("leaseId", invalid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let cursor = LockCursor { resource: ResourceName::new("a.b/ü").unwrap(), token: 7 };
        assert_eq!(read_cursor(&write_cursor(&cursor)), Ok(cursor));
        for text in ["", "a", "7", "7.", ".a", "+7.a", "-7.a", "7..", "99999999999999999999.a"] {
            assert!(read_cursor(text).is_err(), "{text}");
        }
    }
}
