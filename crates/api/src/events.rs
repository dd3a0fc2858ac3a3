//! `GET /v1/events`: what happens, as server-sent events.

use leasehold_types::{EndReason, FencingToken, Mode, OwnerId, Permit, ResourceName};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire;

/// The `event:` line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockEventKind {
    /// A lease was given; journaled.
    Granted,
    /// A lease was given back, or ended with its session; journaled.
    Released,
    /// A lease's time ended; journaled.
    Expired,
    /// An operator took a lease away; journaled.
    Forced,
    /// Somebody began to wait; may be missed.
    Queued,
    /// A lease was renewed; may be missed.
    Renewed,
}

impl LockEventKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Forced => "forced",
            Self::Queued => "queued",
            Self::Renewed => "renewed",
        }
    }
}

/// The `data:` line of one happening at a resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockEvent {
    /// What; the same word as the `event:` line.
    pub event: LockEventKind,
    /// Where.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Whose.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// Its token; none while it is queued.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<FencingToken>,
    /// How it is shared.
    #[serde(with = "wire::text")]
    pub mode: Mode,
    /// Permit of a semaphore.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
    /// Its ttl.
    pub ttl_ms: u64,
    /// Why it ended.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// Whether max hold ended it; left out when not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub max_hold: bool,
    /// For people.
    pub at: Timestamp,
}

/// The `data:` line of a `compacted` event: what came before `oldest` is gone, and the stream goes on from there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactedEvent {
    /// The id of the oldest event that is kept; `null` when none is.
    pub oldest: Option<String>,
}
