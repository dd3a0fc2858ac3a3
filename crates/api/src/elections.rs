//! `/v1/elections`: campaign, proclaim, resign, observe. Leadership is a lease on the resource `election/{name}`: it is
//! renewed and released like any other.

use leasehold_types::{Class, FencingToken, Guarantee, LeaseId, Mode, OwnerId, ResourceName, SessionId};
use serde::{Deserialize, Serialize};

use crate::locks::Holder;
use crate::timestamp::Timestamp;
use crate::wire::{self, No, Yes};

/// What stands before the name of an election in the name of its resource.
pub const ELECTION_PREFIX: &str = "election/";

/// `POST /v1/elections/{name}/campaign`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CampaignRequest {
    /// Who, for people and for hand-overs. May be left out with a session, whose owner it then is.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<OwnerId>,
    /// How long without renewal, in milliseconds; or else [`CampaignRequest::ttl_seconds`]; neither: 15 s.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The same in seconds.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// How long to be a candidate; 0: answer at once.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// What observers learn of the leader, such as its address.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The session that leadership lives and ends with.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// A random UUID of the caller's, so that a retry is the same candidacy.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
}

/// What came of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CampaignAnswer {
    /// The caller leads.
    Elected(ElectedAnswer),
    /// Somebody else does, and the wait is over.
    NotElected(NotElectedAnswer),
}

/// The caller leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElectedAnswer {
    /// `true`.
    pub elected: Yes,
    /// The resource of the election.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Who.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// The capability to renew, proclaim and resign.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// Larger than that of every earlier leader: the term.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// The same with resource and generation under a MAC; there if the service has keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_token: Option<String>,
    /// What was really given; count from when the request was sent.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: Timestamp,
    /// For people.
    pub created_at: Timestamp,
    /// Always exclusive.
    #[serde(with = "wire::text")]
    pub mode: Mode,
    /// Always correctness.
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

/// Somebody else leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotElectedAnswer {
    /// `false`.
    pub elected: No,
    /// The resource of the election.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// Who leads.
    pub holders: Vec<Holder>,
    /// How many candidates wait.
    pub waiters: u64,
    /// When an open lock delay ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_regrant_at: Option<Timestamp>,
}

/// `GET /v1/elections/{name}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElectionAnswer {
    /// Which election.
    pub name: String,
    /// Who leads; `null` if nobody does.
    pub leader: Option<Leader>,
    /// Who waits, in order.
    #[serde(with = "wire::text_list")]
    pub candidates: Vec<OwnerId>,
}

/// Who leads, as everybody may see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Who.
    #[serde(with = "wire::text")]
    pub owner_id: OwnerId,
    /// Its token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// What it proclaims; `null` if nothing.
    pub value: Option<String>,
    /// For people.
    pub elected_at: Timestamp,
}

/// `POST /v1/elections/{name}/proclaim`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProclaimRequest {
    /// The leader's lease.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// What observers are told from now on.
    pub value: String,
}

/// The value is told to observers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProclaimAnswer {
    /// `true`.
    pub proclaimed: Yes,
    /// Which election.
    pub name: String,
    /// The leader's token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
}

/// `POST /v1/elections/{name}/resign`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResignRequest {
    /// The leader's lease.
    #[serde(with = "wire::text")]
    pub lease_id: LeaseId,
    /// The candidate who is to lead next; without one the first in line.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub to: Option<OwnerId>,
}

/// Leadership is given back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResignAnswer {
    /// `true`.
    pub resigned: Yes,
    /// Which election.
    pub name: String,
    /// The token that has ended.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
}

/// The `data:` line of `vacant` in `GET /v1/elections/{name}/observe`; that of `leader` is a [`Leader`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VacantEvent {
    /// The last leader's token, where known.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<FencingToken>,
}
