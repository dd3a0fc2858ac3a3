//! `/v1/fences`.

use leasehold_api as api;
use leasehold_types::limits;

use super::App;
use super::answer::{Answer, Failure, json};
use super::convert::bad_field;
use super::received::Received;
use super::suspicion::Seen;
use crate::fences::COUNTS_FOR;

/// The most rejections of one report: with their names they fit into a body.
const REJECTIONS: usize = 100;

/// `POST /v1/fences/report`.
pub(super) async fn report(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let (_, report) = received.change::<api::FenceReportRequest>().await?;
    if report.prefix.len() > limits::NAME_BYTES || report.prefix.chars().any(char::is_control) {
        return Err(bad_field("prefix", "is not the beginning of a name").into());
    }
    if report.rejections.len() > REJECTIONS {
        return Err(bad_field("rejections", "are more than 100").into());
    }
    app.may_report(&report.prefix)?;
    let counts = app.fences.report(&app.tenant, &report);
    for rejection in &report.rejections {
        let (old, new) = (rejection.fencing_token, rejection.highest_token);
        app.suspect(Seen::AtAFence, &rejection.resource, old, new);
    }
    let counts_for_ms = if counts { u64::try_from(COUNTS_FOR.as_millis()).unwrap_or(u64::MAX) } else { 0 };
    Ok(json(&api::FenceReportAnswer { counts_for_ms }))
}

/// `GET /v1/fences`.
pub(super) fn list(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    app.may_inspect()?;
    Ok(json(&api::FencesAnswer { fences: app.fences.known(&app.tenant) }))
}
