//! `GET /v1/status`: who answers, and how it is.

use leasehold_types::{ClusterId, Durability};
use serde::{Deserialize, Serialize};

use crate::wire;

/// What a node may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decides.
    Active,
    /// Waits to take over.
    Standby,
}

impl Role {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Standby => "standby",
        }
    }
}

/// How the node is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// The journal's id.
    #[serde(with = "wire::text")]
    pub cluster_id: ClusterId,
    /// Its life since the last lossy recovery.
    pub generation: u64,
    /// This node's name.
    pub node: String,
    /// What it may do.
    pub role: Role,
    /// The epoch it knows.
    pub epoch: u64,
    /// The kind of journal: `embedded` …
    pub journal: String,
    /// What an acknowledged commit survives.
    #[serde(with = "wire::text")]
    pub durability: Durability,
    /// Of the program.
    pub version: String,
    /// Where the active node is; `null` when unknown.
    pub active_address: Option<String>,
    /// Nodes seen.
    pub nodes: Vec<NodeSeen>,
    /// Whether commits make progress. Renewals are refused while they do not.
    pub stalled: bool,
    /// Whether the journal has room for grants, or for endings only.
    pub room: bool,
    /// Live leases.
    pub locks_held: u64,
    /// Live sessions.
    pub sessions_open: u64,
    /// Waiting acquires.
    pub waiters: u64,
    /// The largest token ever given.
    pub last_token: u64,
    /// The last committed slot, as far as this node has followed.
    pub slot: u64,
    /// Committed slots that a standby has not followed yet; 0 on the active node.
    pub lag: u64,
    /// The format of facts that the journal has; `upgrade finish` raises it.
    pub format: u8,
    /// The newest format of facts that this node knows.
    pub known_format: u8,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSeen {
    /// Its name.
    pub node: String,
    /// What it may do.
    pub role: Role,
    /// Where it is; `null` when unknown.
    pub address: Option<String>,
    /// Of its program; `null` when unknown.
    pub version: Option<String>,
    /// The newest format of facts that it knows.
    pub known_format: u8,
    /// Committed slots that it has not followed yet, as it said itself.
    pub lag: u64,
    /// How long ago it was heard of last; 0 for the node that answers.
    pub last_seen_ms: u64,
}

/// `POST /v1/upgrade/finish`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpgradeFinishRequest {
    /// Who says so.
    pub actor_id: String,
    /// Why.
    pub reason: String,
}

/// What came of finishing an upgrade.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeFinishAnswer {
    /// Whether the journal has the newest format that the active node knows; not while an older node is alive.
    pub finished: bool,
    /// The format of the journal now.
    pub format: u8,
    /// The format before.
    pub before: u8,
    /// Nodes that are alive and do not know the newer format.
    pub older_nodes: Vec<NodeSeen>,
}
