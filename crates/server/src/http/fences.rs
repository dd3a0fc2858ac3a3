//! `/v1/fences`.

use http::HeaderMap;
use hyper::body::Incoming;
use leasehold_api as api;
use leasehold_types::limits;

use super::App;
use super::answer::{Answer, Failure, json};
use super::convert::bad_field;
use super::request::{self, Query};
use crate::fences::COUNTS_FOR;

/// The most rejections of one report: with their names they fit into a body.
const REJECTIONS: usize = 100;

/// `POST /v1/fences/report`.
pub(super) async fn report(
    app: &App,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    request::key(headers)?;
    let report: api::FenceReportRequest = request::json(headers, body, app.limits.body_bytes).await?;
    if report.prefix.len() > limits::NAME_BYTES || report.prefix.chars().any(char::is_control) {
        return Err(bad_field("prefix", "is not the beginning of a name").into());
    }
    if report.rejections.len() > REJECTIONS {
        return Err(bad_field("rejections", "are more than 100").into());
    }
    app.may_report(&report.prefix)?;
    let counts = app.fences.report(&app.tenant, &report);
    for rejection in &report.rejections {
        app.metrics.dual_owner_suspected(&app.tenant, rejection.resource.prefix());
        tracing::warn!(
            event = "lock_lost_suspected",
            resource = rejection.resource.as_str(),
            fencingToken = rejection.fencing_token.get(),
            highestToken = rejection.highest_token.get(),
            "a fence rejected a stale token: its holder went on after the end of its lease"
        );
    }
    let counts_for_ms = if counts { u64::try_from(COUNTS_FOR.as_millis()).unwrap_or(u64::MAX) } else { 0 };
    Ok(json(&api::FenceReportAnswer { counts_for_ms }))
}

/// `GET /v1/fences`.
pub(super) fn list(app: &App, query: Option<&str>, body: Incoming) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    request::no_body(&body)?;
    app.may_inspect()?;
    Ok(json(&api::FencesAnswer { fences: app.fences.known(&app.tenant) }))
}
