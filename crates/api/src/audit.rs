//! `/v1/audit`: what operators did, as a hash chain.

use leasehold_types::{FencingToken, ResourceName};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire;

/// One action of an operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// `FORCE_RELEASE`, `SESSION_END`, `RECOVER`, `UPGRADE_FINISH`, `CREDENTIAL_CREATE`, `CREDENTIAL_REVOKE`,
    /// `SETTINGS_CHANGE`, `BACKUP`.
    pub action: String,
    /// What, where it was about a resource.
    pub resource: Option<String>,
    /// Whose; empty for an action on the whole journal.
    pub tenant: String,
    /// Who said so.
    pub actor_id: String,
    /// The authenticated caller; `null` on an open server.
    pub identity: Option<String>,
    /// Why.
    pub reason: String,
    /// The token that ended by it, when it was one.
    #[serde(with = "wire::number_or_null")]
    pub fencing_token: Option<FencingToken>,
    /// Every token that ended by it.
    pub fencing_tokens: Vec<u64>,
    /// For people.
    pub created_at: Timestamp,
    /// Hash of the entry before, in hexadecimal.
    pub prev_hash: String,
    /// Hash of this one.
    pub hash: String,
}

impl AuditRecord {
    /// The resource as a name, where there is one.
    pub fn resource_name(&self) -> Option<ResourceName> {
        self.resource.as_deref().and_then(|name| ResourceName::new(name).ok())
    }
}

/// `GET /v1/audit`: one page of entries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// In order.
    pub entries: Vec<AuditRecord>,
    /// Ask with `after` set to this for more; `null` at the end.
    pub next_after: Option<u64>,
}

/// `GET /v1/audit/verify`: what recomputing the chain found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerifyAnswer {
    /// Whether every hash is right.
    pub intact: bool,
    /// Entries looked at.
    pub entries: u64,
    /// The first entry whose hash or place is wrong.
    pub first_bad: Option<u64>,
    /// The chain's end, in hexadecimal.
    pub head: String,
}
