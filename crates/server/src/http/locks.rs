//! `/v1/locks`.

use leasehold_api as api;
use leasehold_api::{Problem, Timestamp};
use leasehold_core::{Command, LockCursor, LockFilter, Query as CoreQuery, Reply};
use leasehold_types::{LeaseId, OwnerId, ResourceName, limits};

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::received::Received;
use super::request::{self, Query};
use super::{App, unexpected};

/// `POST /v1/locks/acquire`.
pub(super) async fn acquire(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let (key, request) = received.change::<api::AcquireRequest>().await?;
    let acquire = convert::acquire(request, &app.limits)?;
    match app.acquire(key, acquire).await? {
        Reply::Granted(grant) => {
            let signed = app.signed(&*grant);
            Ok(json(&convert::granted(*grant, signed)))
        }
        Reply::NotGranted(not) => Ok(json(&convert::not_granted(*not))),
        other => unexpected(&other),
    }
}

/// `POST /v1/locks/{leaseId}/renew`.
pub(super) async fn renew(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let lease_id = lease_id(id)?;
    let (key, request) = received.change_or_default::<api::RenewRequest>().await?;
    let renew = convert::renew(lease_id, request, &app.limits)?;
    match app.renew(key, Command::Renew(renew)).await? {
        Reply::Renewed(renewed) => Ok(json(&convert::renewed(*renewed, |lock| app.signed(lock)))),
        other => unexpected(&other),
    }
}

/// `DELETE /v1/locks/{leaseId}`.
pub(super) async fn release(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let (key, lease_id) = (received.key()?, lease_id(id)?);
    let (resource, token) = app.free(key, lease_id, Command::Release { lease_id }).await?;
    Ok(json(&api::ReleaseAnswer { released: api::Yes, resource, fencing_token: token }))
}

/// `GET /v1/locks/{leaseId}`.
pub(super) async fn show(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    match app.query(CoreQuery::Lease(lease_id(id)?)).await? {
        Reply::Lease(view) => {
            let signed_token = app.signed(&*view);
            Ok(json(&api::LockRecord { signed_token, ..convert::record(*view, true) }))
        }
        other => unexpected(&other),
    }
}

/// `GET /v1/locks`.
pub(super) async fn list(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    match app.query(CoreQuery::Locks(filter(&received)?)).await? {
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

fn filter(received: &Received<'_>) -> Result<LockFilter, Problem> {
    let known = ["prefix", "ownerId", "sessionId", "heldLongerThanMs", "missedAtLeast", "pageSize", "cursor"];
    let query = received.parameters(&known)?;
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
