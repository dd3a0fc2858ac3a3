//! HTTP in front of a node: decodes, submits, tells. Handlers hold no state and decide nothing.

pub(crate) mod accept;
mod answer;
mod app;
mod audit;
pub(crate) mod connection;
mod console;
pub(crate) mod convert;
mod credentials;
pub(crate) mod elections;
mod events;
mod fences;
pub(crate) mod forward;
pub(crate) mod guard;
mod health;
mod identity;
mod locks;
pub(crate) mod nodes;
pub(crate) mod observe;
mod request;
mod resources;
mod route;
mod sessions;

use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use leasehold_api::{ErrorCode, Problem};
use leasehold_core::Reply;
use tokio::sync::watch;

use crate::auth::ConnectionCaller;
use crate::forwarding;
use crate::traces;
use answer::{Answer, AnswerBody, EPOCH, Failure};
use connection::Activity;

pub(crate) use app::{App, Base, outcome};
pub(crate) use route::Place;

/// Completes when the server is to end. Cancel-safe.
pub(crate) async fn draining(drain: &mut watch::Receiver<bool>) {
    // A server that is gone without a word is at its end as well.
    drop(drain.wait_for(|draining| *draining).await);
}

/// Answers one request.
pub(crate) async fn answer(app: &Arc<App>, request: Request<Incoming>, activity: &Arc<Activity>) -> Answer {
    let in_flight = activity.begin();
    let mut span =
        app.traces.request(request.headers(), || route::span_name(request.method(), request.uri()));
    let dispatched = match &span {
        None => dispatch(app, request, &activity.caller).await,
        Some(span) => traces::within(span, Box::pin(dispatch(app, request, &activity.caller))).await,
    };
    let mut answer = match dispatched {
        Ok(answer) => answer,
        Err(failure) => {
            activity.leave_unread();
            failure.into_answer()
        }
    };
    if let AnswerBody::Stream(_, busy) = answer.body_mut() {
        *busy = Some(in_flight);
    }
    if let Some(span) = &mut span {
        span.set("http.response.status_code", u64::from(answer.status().as_u16()));
        if answer.status().is_server_error() {
            span.fail(answer.status().to_string());
        }
    }
    // The epoch in an answer is that of the node that decided (N7).
    answer.headers_mut().entry(&EPOCH).or_insert_with(|| app.epoch.clone());
    answer
}

async fn dispatch(
    app: &Arc<App>,
    request: Request<Incoming>,
    connection: &ConnectionCaller,
) -> Result<Answer, Failure> {
    guard::check(&app.hosts, request.uri(), request.headers())?;
    let (mut head, body) = request.into_parts();
    if forwarding::is_of_a_node(&head.headers) {
        app.check_forwarded(&mut head)?;
    }
    if head.uri.path() == nodes::KNOCK_PATH {
        return nodes::knock(app, &head.headers);
    }
    if let Some(forward) = app.forward_for(head.uri.path(), &head.headers) {
        app.vouch(&mut head, connection);
        traces::hand_on(&mut head.headers);
        return Ok(forward.http(Request::from_parts(head, body)).await?);
    }
    let app = &app.admit(App::demand_of(head.uri.path()), &head, connection)?;
    let (headers, query) = (&head.headers, head.uri.query());
    let place = Place::of(head.uri.path()).ok_or_else(|| unknown_path(head.uri.path()))?;
    let is_stream = matches!(place, Place::Events | Place::Observe(_));
    let method = if head.method == Method::HEAD && !is_stream { Method::GET } else { head.method };
    match (place, method) {
        (Place::Acquire, Method::POST) => locks::acquire(app, headers, query, body).await,
        (Place::RenewLock(id), Method::POST) => locks::renew(app, id, headers, query, body).await,
        (Place::Lock(id), Method::DELETE) => locks::release(app, id, headers, query, body).await,
        (Place::Lock(id), Method::GET) => locks::show(app, id, query, body).await,
        (Place::Locks, Method::GET) => locks::list(app, query, body).await,
        (Place::Resource(name), Method::GET) => resources::explain(app, name, query, body).await,
        (Place::ForceRelease(name), Method::POST) => {
            resources::force_release(app, name, headers, query, body).await
        }
        (Place::ValidateToken, Method::POST) => resources::validate(app, headers, query, body).await,
        (Place::Fences, Method::GET) => fences::list(app, query, body),
        (Place::Identity, Method::GET) => identity::show(app, query, body).await,
        (Place::FenceReport, Method::POST) => fences::report(app, headers, query, body).await,
        (Place::Sessions, Method::POST) => sessions::open(app, headers, query, body).await,
        (Place::Sessions, Method::GET) => sessions::list(app, query, body).await,
        (Place::Session(id), Method::GET) => sessions::show(app, id, query, body).await,
        (Place::Session(id), Method::DELETE) => sessions::close(app, id, headers, query, body).await,
        (Place::RenewSession(id), Method::POST) => sessions::renew(app, id, headers, query, body).await,
        (Place::Campaign(name), Method::POST) => elections::campaign(app, name, headers, query, body).await,
        (Place::Election(name), Method::GET) => elections::show(app, name, query, body).await,
        (Place::Proclaim(name), Method::POST) => elections::proclaim(app, name, headers, query, body).await,
        (Place::Resign(name), Method::POST) => elections::resign(app, name, headers, query, body).await,
        (Place::Observe(name), Method::GET) => observe::stream(app, name, query, body),
        (Place::Events, Method::GET) => events::stream(app, headers, query, body),
        (Place::Audit, Method::GET) => audit::list(app, query, body).await,
        (Place::AuditVerify, Method::GET) => audit::verify(app, query, body).await,
        (Place::UpgradeFinish, Method::POST) => nodes::finish_upgrade(app, headers, query, body).await,
        (Place::Credentials, Method::POST) => credentials::create(app, headers, query, body).await,
        (Place::Credentials, Method::GET) => credentials::list(app, query, body).await,
        (Place::Credential(id), Method::DELETE) => credentials::revoke(app, id, headers, query, body).await,
        (Place::Status, Method::GET) => health::status(app, query, body).await,
        (Place::Healthz, Method::GET) => health::alive(query, body),
        (Place::Readyz, Method::GET) => health::ready(app, headers, query, body).await,
        (Place::Metrics, Method::GET) => health::metrics(app, query, body).await,
        (Place::OpenApi, Method::GET) => health::openapi(query, body),
        (Place::Root, Method::GET) => console::root(),
        (Place::Console(file), Method::GET) => console::file(file),
        (place, _) => Err(Failure::method(place.allow())),
    }
}

fn unknown_path(path: &str) -> Problem {
    let hint = if path.starts_with("/v1/resources/") { "; write `/` in a name as %2F" } else { "" };
    Problem::new(ErrorCode::NotFound, format!("no such path{hint}"))
}

/// A reply of another kind than the command has: a broken promise of the node, which must not be papered over.
pub(crate) fn unexpected(reply: &Reply) -> ! {
    panic!("the node answered a command with a reply of another kind: {reply:?}")
}
