//! `/v1/resources`: explain and force-release.

use leasehold_types::{EndReason, FencingToken, Mode, OwnerId, ResourceName};
use serde::{Deserialize, Serialize};

use crate::locks::{Holder, LockRecord};
use crate::timestamp::Timestamp;
use crate::wire;

/// `GET /v1/resources/{resource}`: who holds it, who waits, how earlier leases ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainAnswer {
    /// Which.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Who holds it, by token; without lease ids.
    pub holders: Vec<LockRecord>,
    /// Who waits, in order.
    pub waiters: Vec<WaiterRecord>,
    /// The largest token still known.
    #[serde(with = "wire::number_or_null")]
    pub last_token: Option<FencingToken>,
    /// The last endings, newest first.
    pub endings: Vec<EndingRecord>,
    /// Acquires that met a holder or a waiter, since this node took over and while the resource stayed in use.
    pub contention: u64,
    /// Rejections that fences have reported to this service.
    pub fence_rejections: u64,
    /// When an open lock delay ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_regrant_at: Option<Timestamp>,
    /// When it was true.
    pub as_of: Timestamp,
}

/// Somebody in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaiterRecord {
    /// Label.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// How it wants to share.
    #[serde(with = "wire::text")]
    pub mode: Mode,
    /// How long it has waited.
    pub waiting_ms: u64,
}

/// How a lease of the resource ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndingRecord {
    /// Whose.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// Its token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Why.
    #[serde(with = "wire::text")]
    pub reason: EndReason,
    /// Whether max hold ended it; left out when not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub max_hold: bool,
    /// For people.
    pub at: Timestamp,
}

/// `POST /v1/resources/{resource}/force-release`. Exactly one of token and all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForceReleaseRequest {
    /// Who says so.
    pub actor_id: String,
    /// Why.
    pub reason: String,
    /// Force out the holder of this token and nobody else.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<FencingToken>,
    /// Force out every holder; `true` or left out.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub all: Option<wire::Yes>,
    /// Do not keep the resource closed for its lock delay.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub skip_lock_delay: Option<bool>,
}

/// Who was forced out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForceReleaseAnswer {
    /// Perhaps nobody.
    pub released: Vec<Holder>,
    /// The number of the audit entry that says so.
    pub audit_seq: u64,
}
