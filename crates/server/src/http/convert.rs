//! Between the wire and the vocabulary of the table. Bad input dies here.

use leasehold_api as api;
use leasehold_api::{ErrorCode, Problem, Timestamp};
use leasehold_core as core;
use leasehold_core::{Operator, Refusal, RenewalReport, Sharing};
use leasehold_node::SubmitError;
use leasehold_types::{EndReason, FencingToken, LeaseId, Mode, ResourceName, SessionId, Ttl, ids, limits};

use crate::config::Limits;

/// A mistake in one field.
pub(crate) fn bad_field(field: &str, what: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::BadRequest, format!("{field}: {what}"))
}

fn bounded(field: &str, ms: u64, most: u64) -> Result<u64, Problem> {
    if ms > most { Err(bad_field(field, format_args!("{ms} is more than {most}"))) } else { Ok(ms) }
}

/// A text for people: not empty, not too long, without control characters.
pub(crate) fn text(field: &str, text: &str, most: usize) -> Result<Box<str>, Problem> {
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
pub(crate) fn acquire(request: api::AcquireRequest, limits: &Limits) -> Result<core::Acquire, Problem> {
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

/// What a failed submission is on the wire.
pub(crate) fn submit_problem(error: SubmitError) -> Problem {
    match error {
        SubmitError::NotActive => Problem::new(ErrorCode::NotActive, "this node is not the active one"),
        SubmitError::ShuttingDown => Problem::new(ErrorCode::NotActive, "the node is shutting down"),
        SubmitError::StoreUnavailable(why) => Problem::new(ErrorCode::StoreUnavailable, why),
        SubmitError::OutcomeUnknown(why) => Problem::new(ErrorCode::OutcomeUnknown, why),
        SubmitError::Overloaded => {
            Problem::new(ErrorCode::Overloaded, "too many requests wait; try again after a pause")
        }
    }
}

/// What a lawful no is on the wire.
pub(crate) fn refusal_problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::LeaseNotHeld { reason, max_hold, token } => {
            let mut problem = Problem::new(ErrorCode::LeaseNotHeld, ended(reason, max_hold));
            problem.reason = Some(reason);
            problem.fencing_token = token;
            problem
        }
        Refusal::SessionEnded => {
            let mut problem =
                Problem::new(ErrorCode::LeaseNotHeld, "the session has ended, or nobody knows it");
            problem.reason = Some(EndReason::SessionEnded);
            problem
        }
        Refusal::NotFound => Problem::new(ErrorCode::NotFound, "nobody knows this id"),
        Refusal::IdempotencyMismatch => Problem::new(
            ErrorCode::IdempotencyMismatch,
            "this lease id or Idempotency-Key was used for a request with other content",
        ),
        Refusal::ClassNotSupported => Problem::new(
            ErrorCode::ClassNotSupported,
            "the journal can lose acknowledged grants; ask for the class efficiency, or use another journal",
        ),
        Refusal::StaleToken { current } => {
            let mut problem = Problem::new(ErrorCode::StaleToken, "no present holder has this token");
            problem.current_tokens = Some(current.into_iter().map(FencingToken::get).collect());
            problem
        }
        Refusal::NoSuchWaiter => Problem::new(ErrorCode::NotFound, "nobody of that name is waiting"),
        Refusal::NotAsSession { field } => bad_field(field, "differs from the session's; leave it out"),
        Refusal::NoRoom => {
            Problem::new(ErrorCode::StoreUnavailable, "disk full: releases and renewals still work")
        }
        Refusal::TokensUsedUp => Problem::new(ErrorCode::StoreUnavailable, "all fencing tokens are used up"),
        Refusal::Superseded => Problem::new(
            ErrorCode::OutcomeUnknown,
            "a later request with the same lease id took this one's place in the queue",
        ),
    }
}

fn ended(reason: EndReason, max_hold: bool) -> &'static str {
    match reason {
        _ if max_hold => "max_hold: the lease reached its longest age",
        EndReason::Released => "the lease was released",
        EndReason::Expired => "the lease has expired",
        EndReason::Forced => "an operator took the lease away",
        EndReason::SessionEnded => "the session of the lease has ended",
        EndReason::Unknown => "nobody knows this lease id",
    }
}

/// A grant as it is told.
pub(crate) fn granted(grant: core::Grant) -> api::AcquireAnswer {
    api::AcquireAnswer::Granted(api::GrantedAnswer {
        acquired: api::Yes,
        resource: grant.resource,
        owner_id: grant.owner,
        lease_id: grant.lease_id,
        fencing_token: grant.token,
        permit: grant.permit,
        ttl_ms: grant.ttl_ms,
        expires_at: Timestamp(grant.expires_at),
        created_at: Timestamp(grant.created_at),
        mode: grant.mode,
        class: grant.class,
        guarantee: grant.guarantee,
        session_id: grant.session,
        warning: grant.warning.map(str::to_owned),
    })
}

/// A refusal of an acquire as it is told.
pub(crate) fn not_granted(not: core::NotGranted) -> api::AcquireAnswer {
    api::AcquireAnswer::NotGranted(api::NotGrantedAnswer {
        acquired: api::No,
        resource: not.resource,
        holders: not.holders.into_iter().map(holder).collect(),
        waiters: not.waiters as u64,
        earliest_regrant_at: not.earliest_regrant_at.map(Timestamp),
    })
}

/// A holder as others may see it.
pub(crate) fn holder(holder: core::Holder) -> api::Holder {
    api::Holder {
        owner_id: holder.owner,
        fencing_token: holder.token,
        permit: holder.permit,
        expires_at: Timestamp(holder.expires_at),
        mode: holder.mode,
    }
}

/// A renewal as it is told.
pub(crate) fn renewed(renewed: core::Renewed) -> api::RenewAnswer {
    let lock = |(resource, fencing_token)| api::RenewedLock { resource, fencing_token };
    api::RenewAnswer {
        renewed: api::Yes,
        lease_id: renewed.lease_id,
        ttl_ms: renewed.ttl_ms,
        expires_at: Timestamp(renewed.expires_at),
        locks: renewed.locks.into_iter().map(lock).collect(),
    }
}

/// A renewed session as it is told.
pub(crate) fn session_renewed(renewed: core::SessionRenewed) -> api::RenewSessionAnswer {
    let ended = |ended: core::EndedInSession| api::EndedLease {
        lease_id: ended.lease_id,
        resource: ended.resource,
        fencing_token: ended.token,
        reason: ended.reason,
    };
    api::RenewSessionAnswer {
        session_id: renewed.session_id,
        ttl_ms: renewed.ttl_ms,
        expires_at: Timestamp(renewed.expires_at),
        lock_count: renewed.lock_count as u64,
        ended: renewed.ended.into_iter().map(ended).collect(),
    }
}

/// Everything known of a lease; without its id where others may read it.
pub(crate) fn record(view: core::LeaseView, show_id: bool) -> api::LockRecord {
    api::LockRecord {
        resource: view.resource,
        owner_id: view.owner,
        lease_id: show_id.then_some(view.lease_id),
        fencing_token: view.token,
        permit: view.permit,
        mode: view.mode,
        limit: view.limit,
        class: view.class,
        guarantee: view.guarantee,
        session_id: view.session,
        created_at: Timestamp(view.created_at),
        expires_at: Timestamp(view.expires_at),
        ttl_ms: view.ttl_ms,
        remaining_ms: view.remaining_ms,
        held_ms: view.held_ms,
        max_hold_ms: view.max_hold_ms,
        lock_delay_ms: view.lock_delay_ms,
        labels: view.labels,
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from),
        max_gap_ms: view.max_gap_ms,
        waiters: view.waiters as u64,
    }
}

/// An explanation as it is told.
pub(crate) fn explained(explained: core::Explained) -> api::ExplainAnswer {
    let waiter = |waiter: core::WaiterView| api::WaiterRecord {
        owner_id: waiter.owner,
        mode: waiter.mode,
        waiting_ms: waiter.waiting_ms,
    };
    let ending = |ending: core::Ending| api::EndingRecord {
        owner_id: ending.owner,
        fencing_token: ending.token,
        reason: ending.reason,
        max_hold: ending.max_hold,
        at: Timestamp(ending.at),
    };
    api::ExplainAnswer {
        resource: explained.resource,
        holders: explained.holders.into_iter().map(|view| record(view, false)).collect(),
        waiters: explained.waiters.into_iter().map(waiter).collect(),
        last_token: explained.last_token,
        endings: explained.endings.into_iter().map(ending).collect(),
        contention: explained.contended,
        // Fences have no way to report here yet, so none has.
        fence_rejections: 0,
        earliest_regrant_at: explained.earliest_regrant_at.map(Timestamp),
        as_of: Timestamp(explained.as_of),
    }
}

/// A session as it is told.
pub(crate) fn session(view: core::SessionView) -> api::SessionRecord {
    api::SessionRecord {
        session_id: view.session_id,
        owner_id: view.owner,
        ttl_ms: view.ttl_ms,
        created_at: Timestamp(view.created_at),
        expires_at: Timestamp(view.expires_at),
        remaining_ms: view.remaining_ms,
        lock_count: view.lock_count as u64,
        labels: view.labels,
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from),
        max_gap_ms: view.max_gap_ms,
    }
}

/// An audit entry as it is told.
pub(crate) fn audit_record(entry: core::AuditEntry) -> api::AuditRecord {
    api::AuditRecord {
        seq: entry.seq,
        action: entry.action.as_str().to_owned(),
        resource: entry.resource.map(|key| key.name().to_owned()),
        tenant: entry.tenant.into(),
        actor_id: entry.actor.into(),
        identity: entry.identity.map(String::from),
        reason: entry.reason.into(),
        fencing_token: match entry.tokens[..] {
            [token] => FencingToken::new(token).ok(),
            _ => None,
        },
        fencing_tokens: entry.tokens,
        created_at: Timestamp(entry.at),
        prev_hash: hex(&entry.prev_hash),
        hash: hex(&entry.hash),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
