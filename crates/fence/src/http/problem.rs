//! Refusals as `application/problem+json`.

use http::{HeaderValue, Response, StatusCode, header};

use super::headers::InvalidHeader;
use crate::Rejection;

/// The answer to a request that the fence rejected: 409 with both tokens for a stale one, 428 for a missing one,
/// 403 for one that the service did not sign.
pub fn refusal<B: From<String>>(rejection: &Rejection) -> Response<B> {
    let (status, code) = match rejection {
        Rejection::Stale { .. } => (StatusCode::CONFLICT, "stale_token"),
        Rejection::MissingToken => (StatusCode::PRECONDITION_REQUIRED, "missing_token"),
        Rejection::WrongScope { .. } => (StatusCode::CONFLICT, "wrong_scope"),
        Rejection::AlreadyApplied { .. } => (StatusCode::CONFLICT, "already_applied"),
        Rejection::OutOfOrder { .. } => (StatusCode::CONFLICT, "out_of_order"),
        Rejection::MissingRow => (StatusCode::NOT_FOUND, "not_found"),
        Rejection::Untrusted(_) => (StatusCode::FORBIDDEN, "untrusted_token"),
    };
    let facts = match rejection {
        Rejection::Stale { presented, highest } => {
            format!(",\"fencingToken\":{presented},\"highestToken\":{highest}")
        }
        _ => String::new(),
    };
    problem(status, code, &rejection.to_string(), &facts)
}

pub(crate) fn invalid<B: From<String>>(error: &InvalidHeader) -> Response<B> {
    problem(StatusCode::BAD_REQUEST, "bad_request", &error.to_string(), "")
}

/// The state of the fence is out of reach: nothing is admitted.
pub(crate) fn unavailable<B: From<String>>(why: &str) -> Response<B> {
    problem(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", why, "")
}

/// The request may have had its effect, or may still have it.
#[cfg(feature = "_serve")]
pub(crate) fn unknown<B: From<String>>(status: StatusCode, why: &str) -> Response<B> {
    write(status, "outcome_unknown", why, "unknown", "")
}

/// A problem without an effect.
pub(crate) fn problem<B: From<String>>(
    status: StatusCode,
    code: &str,
    detail: &str,
    facts: &str,
) -> Response<B> {
    write(status, code, detail, "none", facts)
}

fn write<B: From<String>>(
    status: StatusCode,
    code: &str,
    detail: &str,
    effects: &str,
    facts: &str,
) -> Response<B> {
    let retryable = status == StatusCode::SERVICE_UNAVAILABLE;
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":{},\"status\":{},\"code\":\"{code}\",\"detail\":{},\
         \"retryable\":{retryable},\"sideEffects\":\"{effects}\"{facts}}}",
        text(status.canonical_reason().unwrap_or_default()),
        status.as_u16(),
        text(detail),
    );
    let mut response = Response::new(B::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON string. Names of resources have no control characters; other text may.
fn text(text: &str) -> String {
    let one = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(one).collect::<String>())
}
