//! How the node is: status, health, metrics; and the OpenAPI document.

use http::StatusCode;
use leasehold_api as api;
use leasehold_api::{ErrorCode, OPENAPI, Problem};
use leasehold_node::{Role, Status};

use super::answer::{Answer, Failure, json, whole};
use super::received::Received;
use super::{App, nodes};
use crate::forwarding::is_forwarded;
use crate::survey::survey;

/// `GET /v1/status`.
pub(super) async fn status(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let mut status = app.status().await;
    if is_cut_off(app, &status).await {
        // Who was active last is so no more, and if it were, nobody could tell from here.
        (status.stalled, status.active) = (true, None);
    }
    Ok(json(&status_answer(app, status)))
}

/// Whether nobody serves, as far as a standby can tell: it cannot read the journal, and whoever was active last is not ready.
async fn is_cut_off(app: &App, status: &Status) -> bool {
    status.role == Role::Standby && status.trouble.is_some() && !reaches_active(app).await
}

/// The node as it is told.
fn status_answer(app: &App, status: Status) -> api::StatusAnswer {
    let role = nodes::role(&status);
    api::StatusAnswer {
        cluster_id: status.cluster,
        generation: status.generation.0,
        node: status.node.to_string(),
        role,
        epoch: status.epoch.0,
        journal: status.journal.to_owned(),
        durability: status.durability,
        version: crate::VERSION.to_owned(),
        active_address: active_address(app, &status),
        nodes: nodes::seen(app, &status),
        lag: status.lag,
        stalled: status.stalled,
        room: status.room,
        locks_held: status.counts.leases as u64,
        sessions_open: status.counts.sessions as u64,
        waiters: status.counts.waiters as u64,
        last_token: status.counts.last_token,
        slot: status.tail.0,
        format: status.format,
        known_format: status.known_format,
    }
}

fn active_address(app: &App, status: &Status) -> Option<String> {
    match status.role {
        Role::Active => Some(app.address.clone()),
        Role::Standby => status.active.as_ref().map(|active| active.url.to_string()),
    }
}

/// `GET /healthz`: the process answers.
pub(super) fn alive(received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    Ok(whole(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"))
}

/// `GET /readyz`: requests are decided here, or by an active node that is reached from here.
pub(super) async fn ready(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let status = app.handle.status();
    let not = |code, why: &str| Err(Problem::new(code, why).into());
    match status.role {
        _ if *app.drain.borrow() => not(ErrorCode::NotActive, "the node is shutting down"),
        // Another node asks: it wants to know of this one alone, and two that take each other for the active one must
        // not ask in circles.
        Role::Standby if is_forwarded(received.headers) => {
            not(ErrorCode::NotActive, "this node is not the active one")
        }
        Role::Standby if reaches_active(app).await => Ok(ready_answer()),
        Role::Standby => match status.trouble {
            Some(why) => not(ErrorCode::StoreUnavailable, &why),
            None => not(ErrorCode::NotActive, "this node is not the active one"),
        },
        Role::Active if status.stalled => not(ErrorCode::StoreUnavailable, "commits make no progress"),
        Role::Active => Ok(ready_answer()),
    }
}

async fn reaches_active(app: &App) -> bool {
    match &app.forward {
        Some(forward) => forward.is_ready().await,
        None => false,
    }
}

fn ready_answer() -> Answer {
    whole(StatusCode::OK, "text/plain; charset=utf-8", "ready\n")
}

/// `GET /metrics`.
pub(super) async fn metrics(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let survey = survey(&app.handle, app.tenants_seen()).await;
    let only = (!app.sees_every_tenant()).then_some(&app.tenant);
    let text = app.metrics.render(&app.status().await, &survey, only);
    Ok(whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

/// `GET /openapi.json`.
pub(super) fn openapi(received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    Ok(whole(StatusCode::OK, "application/json", OPENAPI))
}
