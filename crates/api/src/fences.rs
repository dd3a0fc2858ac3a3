//! `/v1/fences/report`: what fences tell the service of themselves.

use leasehold_types::{FencingToken, ResourceName};
use serde::{Deserialize, Serialize};

use crate::{object, wire};

/// `POST /v1/fences/report`: a fence is at work for the names that begin with a prefix, and this is what it rejected
/// since its last report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FenceReportRequest {
    /// How the names of the locks begin that guard what it protects; empty: every lock.
    pub prefix: String,
    /// Whether it rejects stale tokens for all of them by now: the stages `enforce` and `require`.
    pub enforces: bool,
    /// What it rejected as stale; 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "object::list")]
    pub rejections: Vec<FenceRejection>,
}

/// A write that a fence rejected as stale.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FenceRejection {
    /// The lock that guards what was to be written.
    #[serde(with = "wire::text")]
    pub resource: ResourceName,
    /// The token that came late.
    #[serde(with = "wire::number")]
    pub fencing_token: FencingToken,
    /// The highest token that the fence had seen.
    #[serde(with = "wire::number")]
    pub highest_token: FencingToken,
}

/// The answer to a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FenceReportAnswer {
    /// How long grants under the prefix say `fenced` because of this report; 0 when it does not enforce. Report again
    /// in time.
    pub counts_for_ms: u64,
}

/// `GET /v1/fences`: which fences this service knows of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FencesAnswer {
    /// In the order of their prefixes.
    pub fences: Vec<KnownFence>,
}

/// A fence, as far as the service knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownFence {
    /// How the names of the locks begin that guard what it protects.
    pub prefix: String,
    /// What kind a policy declares it to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// Whether it said, when it last reported, that it rejects stale tokens by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforces: Option<bool>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_ms_ago: Option<u64>,
    /// Stale writes that it reported to this node, of the resources that are remembered.
    pub rejections: u64,
}
