//! Errors on the wire: `application/problem+json`.

use leasehold_types::{EndReason, FencingToken};
use serde::{Deserialize, Serialize};

use crate::error::ErrorCode;
use crate::wire;

/// The content type of a [`Problem`].
pub const CONTENT_TYPE: &str = "application/problem+json";

/// What an error tells: for programs `code`, `retryable`, `side_effects` and the facts; for people `detail`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:leasehold:error:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same few words for every problem with this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// From the closed list.
    pub code: ErrorCode,
    /// What is wrong this time.
    pub detail: String,
    /// Whether the same request, with the same lease id or key, may succeed later.
    pub retryable: bool,
    /// Whether something may have happened.
    pub side_effects: SideEffects,
    /// With `lease_not_held`: why the lease ended.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// With `lease_not_held`: its token, where remembered.
    #[serde(default, with = "wire::number_option", skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<FencingToken>,
    /// With `stale_token`: tokens of present holders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_tokens: Option<Vec<u64>>,
}

/// Whether something may have happened although the call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideEffects {
    /// Nothing has happened.
    None,
    /// It may or may not have happened: ask again with the same lease id or key.
    Unknown,
}

impl Problem {
    /// A problem without facts. `detail` is lower case without a full stop.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let side_effects = if code.has_no_side_effects() { SideEffects::None } else { SideEffects::Unknown };
        Self {
            kind: format!("urn:leasehold:error:{code}"),
            title: code.title().to_owned(),
            status: code.http_status(),
            code,
            detail: detail.into(),
            retryable: code.is_retryable(),
            side_effects,
            reason: None,
            fencing_token: None,
            current_tokens: None,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_looks_as_documented() {
        let mut problem = Problem::new(ErrorCode::LeaseNotHeld, "the lease has expired");
        problem.reason = Some(EndReason::Expired);
        problem.fencing_token = FencingToken::new(7).ok();
        let json = serde_json::to_string(&problem).unwrap();
        assert_eq!(
            json,
            r#"{"type":"urn:leasehold:error:lease_not_held","title":"the lease is not held","status":410,"code":"lease_not_held","detail":"the lease has expired","retryable":false,"sideEffects":"none","reason":"expired","fencingToken":7}"#
        );
        assert_eq!(serde_json::from_str::<Problem>(&json).unwrap(), problem);
    }
}
