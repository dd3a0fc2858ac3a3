//! `GET /`: one plain page that says what this is and how it is. No script, no style from elsewhere.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};

use super::App;
use super::answer::{Answer, whole};
use super::health::status_answer;

/// Nothing may run or be loaded; links lead to the server itself.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
pub(super) fn root(app: &App) -> Answer {
    let status = status_answer(app);
    let rows = [
        ("Node", status.node),
        ("Role", status.role.as_str().to_owned()),
        ("Cluster", status.cluster_id.to_string()),
        ("Epoch", status.epoch.to_string()),
        ("Journal", format!("{}, {}", status.journal, status.durability)),
        ("Locks held", status.locks_held.to_string()),
        ("Waiting", status.waiters.to_string()),
        ("Sessions", status.sessions_open.to_string()),
        ("Version", status.version),
    ];
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(value)))
        .collect();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Leasehold</title></head>\n<body>\n\
         <h1>Leasehold</h1>\n<p>A lock service. This node answers on this port; the state below is of the moment \
         the page was loaded.</p>\n<table>\n{rows}</table>\n<ul>\n\
         <li><a href=\"/v1/locks\">Locks held</a></li>\n<li><a href=\"/v1/sessions\">Sessions</a></li>\n\
         <li><a href=\"/v1/audit\">Audit log</a></li>\n<li><a href=\"/v1/status\">Status</a></li>\n\
         <li><a href=\"/metrics\">Metrics</a></li>\n<li><a href=\"/openapi.json\">OpenAPI document</a></li>\n\
         </ul>\n</body>\n</html>\n"
    );
    let mut answer = whole(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
