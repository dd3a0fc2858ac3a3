//! From the wire to commands. Bad input dies here.

use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core as core;
use leasehold_core::{Operator, RenewalReport, Sharing};
use leasehold_types::{LeaseId, Mode, ResourceName, SessionId, Ttl, ids, limits};

use super::bad_field;
use crate::config::Limits;

fn bounded(field: &str, ms: u64, most: u64) -> Result<u64, Problem> {
    if ms > most { Err(bad_field(field, format_args!("{ms} is more than {most}"))) } else { Ok(ms) }
}

/// A text for people: not empty, not too long, without control characters.
fn text(field: &str, text: &str, most: usize) -> Result<Box<str>, Problem> {
    match text.len() {
        0 => Err(bad_field(field, "is empty")),
        bytes if bytes > most => Err(bad_field(field, format_args!("has {bytes} bytes, more than {most}"))),
        _ if text.chars().any(char::is_control) => Err(bad_field(field, "has a control character")),
        _ => Ok(text.into()),
    }
}

fn ttl(asked_ms: u64, limits: &Limits) -> Result<Ttl, Problem> {
    Ttl::new(asked_ms, limits.ttl).map_err(|invalid| bad_field("ttlMs", invalid))
}

fn asked_ttl(ttl_ms: Option<u64>, ttl_seconds: Option<u64>, limits: &Limits) -> Result<Option<Ttl>, Problem> {
    let asked = api::asked_ttl_ms(ttl_ms, ttl_seconds).map_err(|both| bad_field("ttlMs", both))?;
    asked.map(|ms| ttl(ms, limits)).transpose()
}

/// Parses an acquire; the lease id is the caller's or drawn here.
pub(crate) fn acquire(mut request: api::AcquireRequest, limits: &Limits) -> Result<core::Acquire, Problem> {
    limits.policies.with(|policies| policies.govern(&mut request))?;
    if request.owner_id.is_none() && request.session_id.is_none() {
        return Err(bad_field("ownerId", "is required without a sessionId"));
    }
    let asked = asked_ttl(request.ttl_ms, request.ttl_seconds, limits)?;
    let max_hold_ms =
        request.max_hold_ms.map(|ms| bounded("maxHoldMs", ms, limits::MAX_HOLD_MAX_MS)).transpose()?;
    if max_hold_ms == Some(0) {
        return Err(bad_field("maxHoldMs", "must be at least 1"));
    }
    Ok(core::Acquire {
        ttl: match (asked, request.session_id) {
            (None, None) => {
                Some(ttl(limits::TTL_DEFAULT_MS.clamp(limits.ttl.min_ms, limits.ttl.max_ms), limits)?)
            }
            (asked, _) => asked,
        },
        wait_ms: bounded("waitMs", request.wait_ms.unwrap_or(0), limits.wait_max_ms)?,
        sharing: sharing(request.mode.unwrap_or(Mode::Exclusive), request.limit)?,
        class: request.class.unwrap_or(leasehold_types::Class::Correctness),
        session: request.session_id,
        renews_session: false,
        lease_id_chosen: request.lease_id.is_some(),
        lease_id: lease_id_of(request.lease_id)?,
        lock_delay_ms: bounded("lockDelayMs", request.lock_delay_ms.unwrap_or(0), limits::LOCK_DELAY_MAX_MS)?,
        max_hold_ms,
        labels: request.labels,
        value: None,
        resource: request.resource,
        owner: request.owner_id,
    })
}

fn lease_id_of(chosen: Option<LeaseId>) -> Result<LeaseId, Problem> {
    match chosen {
        Some(id) if !id.is_random() => {
            Err(bad_field("leaseId", "must be a random (version 4) UUID: it is a capability"))
        }
        Some(id) => Ok(id),
        None => Ok(LeaseId::from_bytes(ids::random())),
    }
}

fn sharing(mode: Mode, limit: Option<u32>) -> Result<Sharing, Problem> {
    match (mode, limit) {
        (Mode::Exclusive, None) => Ok(Sharing::Exclusive),
        (Mode::Shared, None) => Ok(Sharing::Shared),
        (Mode::Semaphore, Some(limit @ 1..=limits::SEMAPHORE_LIMIT)) => Ok(Sharing::Semaphore { limit }),
        (Mode::Semaphore, Some(limit)) => {
            Err(bad_field("limit", format_args!("{limit} is not from 1 to {}", limits::SEMAPHORE_LIMIT)))
        }
        (Mode::Semaphore, None) => Err(bad_field("limit", "is required with the mode semaphore")),
        (_, Some(_)) => Err(bad_field("limit", "is for the mode semaphore alone")),
    }
}

fn report(
    missed: Option<u32>,
    last_error: Option<String>,
    max_gap_ms: Option<u64>,
) -> Result<RenewalReport, Problem> {
    Ok(RenewalReport {
        missed: missed.unwrap_or(0),
        last_error: last_error
            .map(|error| text("lastError", &error, limits::ERROR_TEXT_BYTES))
            .transpose()?,
        max_gap_ms: bounded("maxGapMs", max_gap_ms.unwrap_or(0), limits::TOKEN_MAX)?,
    })
}

/// Parses a renewal of a lease.
pub(crate) fn renew(
    lease_id: LeaseId,
    request: api::RenewRequest,
    limits: &Limits,
) -> Result<core::Renew, Problem> {
    Ok(core::Renew {
        lease_id,
        ttl: asked_ttl(request.ttl_ms, request.ttl_seconds, limits)?,
        report: report(request.missed, request.last_error, request.max_gap_ms)?,
        lists_locks: true,
    })
}

/// Parses the opening of a session; its id is drawn here.
pub(crate) fn open_session(
    request: api::OpenSessionRequest,
    limits: &Limits,
) -> Result<core::OpenSession, Problem> {
    let asked = asked_ttl(request.ttl_ms, request.ttl_seconds, limits)?;
    Ok(core::OpenSession {
        session_id: SessionId::from_bytes(ids::random()),
        owner: request.owner_id,
        ttl: match asked {
            Some(ttl) => ttl,
            None => ttl(limits::TTL_DEFAULT_MS.clamp(limits.ttl.min_ms, limits.ttl.max_ms), limits)?,
        },
        labels: request.labels,
    })
}

/// Parses a renewal of a session.
pub(crate) fn renew_session(
    session_id: SessionId,
    request: api::RenewSessionRequest,
    limits: &Limits,
) -> Result<core::RenewSession, Problem> {
    Ok(core::RenewSession {
        session_id,
        ttl: asked_ttl(request.ttl_ms, request.ttl_seconds, limits)?,
        seen_ended: request.seen_ended,
        report: report(request.missed, request.last_error, request.max_gap_ms)?,
    })
}

/// Parses who acts and why.
pub(crate) fn operator(actor: &str, reason: &str) -> Result<Operator, Problem> {
    Ok(Operator {
        actor: text("actorId", actor, limits::OWNER_BYTES)?,
        reason: text("reason", reason, limits::REASON_BYTES)?,
    })
}

/// Parses a force-release.
pub(crate) fn force_release(
    resource: ResourceName,
    request: api::ForceReleaseRequest,
) -> Result<core::ForceRelease, Problem> {
    let target = match (request.fencing_token, request.all) {
        (Some(token), None) => core::ForceTarget::Token(token),
        (None, Some(api::Yes)) => core::ForceTarget::All,
        _ => return Err(bad_field("fencingToken", "give a fencingToken or all:true, exactly one of them")),
    };
    Ok(core::ForceRelease {
        resource,
        target,
        skip_lock_delay: request.skip_lock_delay.unwrap_or(false),
        operator: operator(&request.actor_id, &request.reason)?,
    })
}
