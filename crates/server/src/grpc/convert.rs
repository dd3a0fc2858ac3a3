//! Between the messages of gRPC and the vocabulary of the table. What HTTP checks too is checked by the same functions:
//! a request becomes a wire type of `leasehold_api` first.

use std::collections::BTreeMap;

use leasehold_api as api;
use leasehold_api::{ErrorCode, Problem};
use leasehold_core as core;
use leasehold_proto::v1 as pb;
use leasehold_types::{
    Class, EndReason, FencingToken, Guarantee, Labels, LeaseId, Mode, OwnerId, RequestKey, ResourceName,
    SessionId, limits,
};

use crate::config::Limits;
use crate::http::convert::{self as http_convert, bad_field};

/// Records in a page when the caller does not say how many.
const PAGE_DEFAULT: usize = 100;

pub(super) fn mode(mode: Mode) -> pb::Mode {
    match mode {
        Mode::Exclusive => pb::Mode::Exclusive,
        Mode::Shared => pb::Mode::Shared,
        Mode::Semaphore => pb::Mode::Semaphore,
    }
}

pub(super) fn asked_mode(number: i32) -> Result<Mode, Problem> {
    match pb::Mode::try_from(number) {
        Ok(pb::Mode::Exclusive) => Ok(Mode::Exclusive),
        Ok(pb::Mode::Shared) => Ok(Mode::Shared),
        Ok(pb::Mode::Semaphore) => Ok(Mode::Semaphore),
        Err(_) => Err(bad_field("mode", "is none of exclusive, shared, semaphore")),
    }
}

pub(super) fn class(class: Class) -> pb::Class {
    match class {
        Class::Correctness => pb::Class::Correctness,
        Class::Efficiency => pb::Class::Efficiency,
    }
}

pub(super) fn asked_class(number: i32) -> Result<Class, Problem> {
    match pb::Class::try_from(number) {
        Ok(pb::Class::Correctness) => Ok(Class::Correctness),
        Ok(pb::Class::Efficiency) => Ok(Class::Efficiency),
        Err(_) => Err(bad_field("class", "is none of correctness, efficiency")),
    }
}

pub(super) fn guarantee(guarantee: Guarantee) -> pb::Guarantee {
    match guarantee {
        Guarantee::BestEffort => pb::Guarantee::BestEffort,
        Guarantee::LeaseOnly => pb::Guarantee::LeaseOnly,
        Guarantee::Fenced => pb::Guarantee::Fenced,
    }
}

pub(super) fn end_reason(reason: EndReason) -> pb::EndReason {
    match reason {
        EndReason::Released => pb::EndReason::Released,
        EndReason::Expired => pb::EndReason::Expired,
        EndReason::Forced => pb::EndReason::Forced,
        EndReason::SessionEnded => pb::EndReason::SessionEnded,
        EndReason::Unknown => pb::EndReason::Unknown,
    }
}

pub(super) fn resource(text: &str) -> Result<ResourceName, Problem> {
    ResourceName::new(text).map_err(invalid)
}

pub(super) fn owner(text: &str) -> Result<OwnerId, Problem> {
    OwnerId::new(text).map_err(invalid)
}

pub(super) fn key(text: &str) -> Result<Option<RequestKey>, Problem> {
    given(text).map(|text| RequestKey::new(text).map_err(invalid)).transpose()
}

fn invalid(name: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::BadRequest, name.to_string())
}

/// Empty text is text that was left out.
pub(super) fn given(text: &str) -> Option<&str> {
    if text.is_empty() { None } else { Some(text) }
}

pub(super) fn labels(labels: BTreeMap<String, String>) -> Result<Labels, Problem> {
    Labels::new(labels).map_err(|error| bad_field("labels", error))
}

/// Labels as they are told.
pub(super) fn told_labels(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// How many records a page has.
pub(super) fn page_size(asked: u32) -> usize {
    match asked as usize {
        0 => PAGE_DEFAULT,
        size => size.min(limits::PAGE_SIZE),
    }
}

pub(super) fn lease_id(text: &str) -> Result<LeaseId, Problem> {
    text.parse().map_err(|error| bad_field("lease_id", error))
}

pub(super) fn session_id(text: &str) -> Result<SessionId, Problem> {
    text.parse().map_err(|error| bad_field("session_id", error))
}

/// The sixteen bytes of a lease id in a stream.
pub(super) fn lease_bytes(bytes: &[u8]) -> Result<LeaseId, Problem> {
    let bytes = bytes.try_into().map_err(|_| bad_field("lease_id", "must have sixteen bytes"))?;
    Ok(LeaseId::from_bytes(bytes))
}

pub(super) fn token(number: u64) -> Result<FencingToken, Problem> {
    FencingToken::new(number).map_err(|error| bad_field("fencing_token", error))
}

pub(super) fn acquire(request: pb::AcquireRequest) -> Result<api::AcquireRequest, Problem> {
    let mut acquire = api::AcquireRequest::new(resource(&request.resource)?);
    acquire.owner_id = given(&request.owner_id).map(owner).transpose()?;
    acquire.ttl_ms = request.ttl_ms;
    acquire.wait_ms = Some(request.wait_ms);
    acquire.mode = Some(asked_mode(request.mode)?);
    acquire.limit = request.limit;
    acquire.class = Some(asked_class(request.class)?);
    acquire.session_id = given(&request.session_id).map(session_id).transpose()?;
    acquire.lease_id = given(&request.lease_id).map(lease_id).transpose()?;
    acquire.lock_delay_ms = Some(request.lock_delay_ms);
    acquire.max_hold_ms = request.max_hold_ms;
    acquire.labels = labels(request.labels)?;
    Ok(acquire)
}

/// An acquire of a stream: owner and ttl are its session's. With a value it is a campaign.
pub(super) fn stream_acquire(
    request: pb::StreamAcquire,
    session: SessionId,
    limits: &Limits,
) -> Result<core::Acquire, Problem> {
    let mut acquire = api::AcquireRequest::new(resource(&request.resource)?);
    acquire.wait_ms = Some(request.wait_ms);
    acquire.mode = Some(asked_mode(request.mode)?);
    acquire.limit = request.limit;
    acquire.class = Some(asked_class(request.class)?);
    acquire.session_id = Some(session);
    acquire.lease_id = Some(lease_bytes(&request.lease_id)?);
    acquire.lock_delay_ms = Some(request.lock_delay_ms);
    acquire.max_hold_ms = request.max_hold_ms;
    if !request.labels.is_empty() {
        acquire.labels = labels(request.labels)?;
    }
    let value = request.value.map(http_convert::value).transpose()?;
    let renews_session = request.renew_session;
    Ok(core::Acquire { value, renews_session, ..http_convert::acquire(acquire, limits)? })
}

/// What a client tells of its renewals, in the fields that HTTP has for it.
pub(super) fn report(report: Option<pb::RenewalReport>) -> (Option<u32>, Option<String>, Option<u64>) {
    let report = report.unwrap_or_default();
    let last_error = given(&report.last_error).map(str::to_owned);
    (Some(report.missed), last_error, Some(report.max_gap_ms))
}

pub(super) fn renew(request: pb::RenewRequest) -> Result<(LeaseId, api::RenewRequest), Problem> {
    let (missed, last_error, max_gap_ms) = report(request.report);
    let renew =
        api::RenewRequest { ttl_ms: request.ttl_ms, ttl_seconds: None, missed, last_error, max_gap_ms };
    Ok((lease_id(&request.lease_id)?, renew))
}

pub(super) fn grant(grant: core::Grant, signed_token: Option<String>) -> pb::Grant {
    pb::Grant {
        resource: grant.resource.as_str().to_owned(),
        owner_id: grant.owner.as_str().to_owned(),
        lease_id: grant.lease_id.to_string(),
        fencing_token: grant.token.get(),
        permit: grant.permit.map(|permit| permit.0),
        ttl_ms: grant.ttl_ms,
        created_at_ms: grant.created_at.0,
        expires_at_ms: grant.expires_at.0,
        mode: mode(grant.mode).into(),
        class: class(grant.class).into(),
        guarantee: guarantee(grant.guarantee).into(),
        session_id: grant.session.map(|id| id.to_string()).unwrap_or_default(),
        warning: grant.warning.unwrap_or_default().to_owned(),
        signed_token: signed_token.unwrap_or_default(),
    }
}

/// A grant as a stream tells it: without what the client said itself.
pub(super) fn stream_grant(grant: &core::Grant, signed_token: Option<String>) -> pb::StreamGrant {
    pb::StreamGrant {
        fencing_token: grant.token.get(),
        permit: grant.permit.map(|permit| permit.0),
        ttl_ms: grant.ttl_ms,
        created_at_ms: grant.created_at.0,
        expires_at_ms: grant.expires_at.0,
        guarantee: guarantee(grant.guarantee).into(),
        warning: grant.warning.unwrap_or_default().to_owned(),
        signed_token: signed_token.unwrap_or_default(),
        session_renewed: grant.session_renewed,
    }
}

pub(super) fn not_granted(not: core::NotGranted) -> pb::NotGranted {
    pb::NotGranted {
        resource: not.resource.as_str().to_owned(),
        holders: not.holders.into_iter().map(holder).collect(),
        waiters: not.waiters as u64,
        earliest_regrant_at_ms: not.earliest_regrant_at.map(|at| at.0),
    }
}

pub(super) fn holder(holder: core::Holder) -> pb::Holder {
    pb::Holder {
        owner_id: holder.owner.as_str().to_owned(),
        fencing_token: holder.token.get(),
        permit: holder.permit.map(|permit| permit.0),
        expires_at_ms: holder.expires_at.0,
        mode: mode(holder.mode).into(),
    }
}

/// Everything known of a lease; without its id where others may read it.
pub(super) fn record(view: core::LeaseView, show_id: bool) -> pb::LockRecord {
    pb::LockRecord {
        resource: view.resource.as_str().to_owned(),
        owner_id: view.owner.as_str().to_owned(),
        lease_id: if show_id { view.lease_id.to_string() } else { String::new() },
        fencing_token: view.token.get(),
        permit: view.permit.map(|permit| permit.0),
        mode: mode(view.mode).into(),
        limit: view.limit,
        class: class(view.class).into(),
        guarantee: guarantee(view.guarantee).into(),
        session_id: view.session.map(|id| id.to_string()).unwrap_or_default(),
        created_at_ms: view.created_at.0,
        expires_at_ms: view.expires_at.0,
        ttl_ms: view.ttl_ms,
        remaining_ms: view.remaining_ms,
        held_ms: view.held_ms,
        max_hold_ms: view.max_hold_ms,
        lock_delay_ms: view.lock_delay_ms,
        labels: told_labels(&view.labels),
        renewals: view.renewals,
        missed: view.missed,
        last_error: view.last_error.map(String::from).unwrap_or_default(),
        max_gap_ms: view.max_gap_ms,
        waiters: view.waiters as u64,
        signed_token: String::new(),
    }
}

pub(super) fn explained(explained: core::Explained) -> pb::ExplainAnswer {
    let waiter = |waiter: core::WaiterView| pb::Waiter {
        owner_id: waiter.owner.as_str().to_owned(),
        mode: mode(waiter.mode).into(),
        waiting_ms: waiter.waiting_ms,
    };
    let ending = |ending: core::Ending| pb::Ending {
        owner_id: ending.owner.as_str().to_owned(),
        fencing_token: ending.token.get(),
        reason: end_reason(ending.reason).into(),
        max_hold: ending.max_hold,
        at_ms: ending.at.0,
    };
    pb::ExplainAnswer {
        resource: explained.resource.as_str().to_owned(),
        holders: explained.holders.into_iter().map(|view| record(view, false)).collect(),
        waiters: explained.waiters.into_iter().map(waiter).collect(),
        last_token: explained.last_token.map(FencingToken::get),
        endings: explained.endings.into_iter().map(ending).collect(),
        contention: explained.contended,
        earliest_regrant_at_ms: explained.earliest_regrant_at.map(|at| at.0),
        as_of_ms: explained.as_of.0,
    }
}

pub(super) fn ended_lease(ended: core::EndedInSession) -> pb::EndedLease {
    pb::EndedLease {
        lease_id: ended.lease_id.to_string(),
        resource: ended.resource.as_str().to_owned(),
        fencing_token: ended.token.get(),
        reason: end_reason(ended.reason).into(),
    }
}
