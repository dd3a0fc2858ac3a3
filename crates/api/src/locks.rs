//! `/v1/locks`: acquire, renew, release, look at.

use leasehold_types::{
    Class, FencingToken, Guarantee, Labels, LeaseId, Mode, OwnerId, Permit, ResourceName, SessionId,
};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire::{self, No, Yes};

/// `POST /v1/locks/acquire`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcquireRequest {
    /// What.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Who, for people. May be left out with a session, whose owner it then is.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<OwnerId>,
    /// How long without renewal, in milliseconds; or else [`AcquireRequest::ttl_seconds`]; neither: 15 s.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The same in seconds.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// How long to wait in the queue; 0: answer at once.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Alone or with others; exclusive by default.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The most holders; required for a semaphore, refused otherwise.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What the lock is for; correctness by default.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The session that the lease lives and ends with.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// A random UUID of the caller's, so that a retry is the same acquire.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
    /// Quiet time after an expiry before the next grant.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub lock_delay_ms: Option<u64>,
    /// The lease ends at this age however often it is renewed.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub max_hold_ms: Option<u64>,
    /// Free-form.
    #[serde(default, with = "crate::labels", skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl AcquireRequest {
    /// An acquire of `resource` with everything else left to its default. Set an owner or a session before sending.
    pub fn new(resource: ResourceName) -> Self {
        Self {
            resource,
            owner_id: None,
            ttl_ms: None,
            ttl_seconds: None,
            wait_ms: None,
            mode: None,
            limit: None,
            class: None,
            session_id: None,
            lease_id: None,
            lock_delay_ms: None,
            max_hold_ms: None,
            labels: Labels::default(),
        }
    }
}

/// What came of an acquire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AcquireAnswer {
    /// The lease is given.
    Granted(GrantedAnswer),
    /// It is not, and nothing has changed.
    NotGranted(NotGrantedAnswer),
}

/// A grant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantedAnswer {
    /// `true`.
    pub acquired: Yes,
    /// Of what.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// To whom.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// The capability to renew and release.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// Larger than that of every earlier grant.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Which place of a semaphore.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// The same with resource and generation under a MAC, for fences that trust nobody's number; there if the service
    /// has keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_token: Option<String>,
    /// What was really given; count from when the request was sent.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: Timestamp,
    /// For people.
    pub created_at: Timestamp,
    /// How it is shared.
    #[serde(with = "wire::text")]
    pub mode: Mode,
    /// What for.
    #[serde(with = "wire::text")]
    pub class: Class,
    /// What it is worth.
    #[serde(with = "wire::text")]
    pub guarantee: Guarantee,
    /// The session it lives with.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Advice, such as a ttl outside the sensible range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Others hold it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotGrantedAnswer {
    /// `false`.
    pub acquired: No,
    /// Of what.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// How many wait.
    pub waiters: u64,
    /// When an open lock delay ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_regrant_at: Option<Timestamp>,
}

/// Somebody who holds a resource, as others may see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Label.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// Token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Permit of a semaphore.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// For people.
    pub expires_at: Timestamp,
    /// How it is shared.
    #[serde(with = "wire::text")]
    pub mode: Mode,
}

/// `POST /v1/locks/{leaseId}/renew`; the body may be empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewRequest {
    /// Another ttl from now on, in milliseconds; neither: the ttl stays.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The same in seconds.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Renewals that failed since the last success.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub missed: Option<u32>,
    /// Why the last one failed.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Longest time between two successes.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub max_gap_ms: Option<u64>,
}

/// A renewal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewAnswer {
    /// `true`.
    pub renewed: Yes,
    /// Which.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// What was really given; count from when the request was sent.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: Timestamp,
    /// What was renewed: the lease, or those of its session.
    pub locks: Vec<RenewedLock>,
}

/// One lease that was renewed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewedLock {
    /// Of what.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Its token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// The same, signed anew; there if the service has keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_token: Option<String>,
}

/// `DELETE /v1/locks/{leaseId}`: it is free.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseAnswer {
    /// `true`.
    pub released: Yes,
    /// What is free.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Whose token it was.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
}

/// `GET /v1/locks/{leaseId}`: everything known of a lease. In lists it has no lease id, which is a capability.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRecord {
    /// Of what.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// By whom.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// The capability to renew and release; left out in lists.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
    /// Token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Permit of a semaphore.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// The token as the service signs it; left out in lists, and where the service has no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_token: Option<String>,
    /// How it is shared.
    #[serde(with = "wire::text")]
    pub mode: Mode,
    /// The most holders that a semaphore's holder accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What for.
    #[serde(with = "wire::text")]
    pub class: Class,
    /// What it is worth.
    #[serde(with = "wire::text")]
    pub guarantee: Guarantee,
    /// The session it lives with.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// For people.
    pub created_at: Timestamp,
    /// For people.
    pub expires_at: Timestamp,
    /// Ttl.
    pub ttl_ms: u64,
    /// Until the holder's own count ends.
    pub remaining_ms: u64,
    /// Since the grant, or since the node took over.
    pub held_ms: u64,
    /// Longest age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold_ms: Option<u64>,
    /// Quiet time after an expiry.
    pub lock_delay_ms: u64,
    /// Free-form.
    #[serde(default, with = "crate::labels")]
    pub labels: Labels,
    /// Renewals of the lease, or of its session, since this node took over.
    pub renewals: u32,
    /// Renewals that failed, as the client reports.
    pub missed: u32,
    /// Why the last one failed, as the client reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Longest gap between two successes, as the client reports.
    pub max_gap_ms: u64,
    /// How many wait for the resource.
    pub waiters: u64,
}

/// `GET /v1/locks`: one page of leases.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocksPage {
    /// In resource order, then by token; without lease ids.
    pub locks: Vec<LockRecord>,
    /// Ask with this for more; `null` at the end. A page may be short, or empty, and still have a next one.
    pub next_cursor: Option<String>,
    /// When it was true.
    pub as_of: Timestamp,
}
