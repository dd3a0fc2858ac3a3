//! `/v1/sessions`: one liveness scope with many leases.

use leasehold_types::{EndReason, FencingToken, Labels, LeaseId, OwnerId, ResourceName, SessionId};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire;

/// `POST /v1/sessions`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenSessionRequest {
    /// Who, for people.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// How long without renewal, in milliseconds; or else [`OpenSessionRequest::ttl_seconds`]; neither: 15 s.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The same in seconds.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Free-form.
    #[serde(default, with = "crate::labels", skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// A session began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSessionAnswer {
    /// The capability to renew and end it, and to acquire in it.
    #[serde(with = "wire::text")]
    pub session_id: SessionId,
    /// Count from when the request was sent.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: Timestamp,
}

/// `POST /v1/sessions/{id}/renew`; the body may be empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewSessionRequest {
    /// Another ttl from now on, in milliseconds; neither: the ttl stays.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The same in seconds.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Endings that the client has taken note of; they are not told again.
    #[serde(default, with = "wire::text_list", skip_serializing_if = "Vec::is_empty")]
    pub seen_ended: Vec<LeaseId>,
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

/// The session lives on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewSessionAnswer {
    /// Which.
    #[serde(with = "wire::text")]
    pub session_id: SessionId,
    /// Count from when the request was sent.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: Timestamp,
    /// Live leases in it.
    pub lock_count: u64,
    /// Leases of it that ended without their holder; repeated until `seenEnded` names them.
    pub ended: Vec<EndedLease>,
}

/// A lease of a live session that ended without its holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedLease {
    /// Which.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// Of what.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Its token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Why.
    #[serde(with = "wire::text")]
    pub reason: EndReason,
}

/// `DELETE /v1/sessions/{id}`: it is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloseSessionAnswer {
    /// `true`.
    pub ended: wire::Yes,
    /// Which.
    #[serde(with = "wire::text")]
    pub session_id: SessionId,
    /// How many leases ended with it.
    pub released: u64,
}

/// `GET /v1/sessions/{id}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Which.
    #[serde(with = "wire::text")]
    pub session_id: SessionId,
    /// Whose.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// Ttl.
    pub ttl_ms: u64,
    /// For people.
    pub created_at: Timestamp,
    /// For people.
    pub expires_at: Timestamp,
    /// Until the client's own count ends.
    pub remaining_ms: u64,
    /// Live leases in it.
    pub lock_count: u64,
    /// Free-form.
    #[serde(default, with = "crate::labels")]
    pub labels: Labels,
    /// Renewals since this node took over.
    pub renewals: u32,
    /// Renewals that failed, as the client reports.
    pub missed: u32,
    /// Why the last one failed, as the client reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Longest gap between two successes, as the client reports.
    pub max_gap_ms: u64,
}

/// `GET /v1/sessions`: one page of sessions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsPage {
    /// In id order.
    pub sessions: Vec<SessionRecord>,
    /// Ask with this for more; `null` at the end.
    pub next_cursor: Option<String>,
}
