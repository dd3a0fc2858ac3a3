//! `/v1/tokens/validate`: advice for people. It is no fence: between this answer and a write the lease can end.

use leasehold_types::{FencingToken, Permit, ResourceName};
use serde::{Deserialize, Serialize};

use crate::wire;

/// `POST /v1/tokens/validate`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidateRequest {
    /// Of which resource.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// The token.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// Of which permit, for semaphores.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permit>,
}

/// Whether the token was held when the service looked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateAnswer {
    /// Whether it was held.
    pub current: bool,
    /// The largest token given for this resource that is still known.
    #[serde(with = "wire::number_or_null")]
    pub last_token: Option<FencingToken>,
}
