//! HTTP in front of a node: decodes, submits, tells. Handlers hold no state and decide nothing.

pub(crate) mod accept;
mod answer;
mod app;
mod audit;
mod backups;
pub(crate) mod connection;
mod console;
pub(crate) mod convert;
mod counted;
mod credentials;
pub(crate) mod elections;
mod events;
mod fences;
pub(crate) mod forward;
pub(crate) mod guard;
mod health;
mod identity;
mod locks;
mod moves;
pub(crate) mod nodes;
pub(crate) mod observe;
mod received;
mod request;
mod resources;
mod route;
mod sessions;
mod suspicion;

use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use leasehold_api::{ErrorCode, Problem};
use leasehold_core::Reply;
use tokio::sync::watch;

use crate::auth::ConnectionCaller;
use crate::forwarding;
use crate::traces;
pub(crate) use answer::DURABILITY;
use answer::{Answer, AnswerBody, EPOCH, Failure};
use connection::Activity;
use received::Received;

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
    // Epoch and durability in an answer are those of the node that decided (N7).
    answer.headers_mut().entry(&EPOCH).or_insert_with(|| app.epoch.clone());
    answer.headers_mut().entry(&DURABILITY).or_insert_with(|| app.durability.clone());
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
    let received = Received::new(&head.headers, head.uri.query(), body, app.limits.body_bytes);
    let place = Place::of(head.uri.path()).ok_or_else(|| unknown_path(head.uri.path()))?;
    let is_stream = matches!(place, Place::Events | Place::Observe(_));
    let method = if head.method == Method::HEAD && !is_stream { Method::GET } else { head.method };
    match (place, method) {
        (Place::Acquire, Method::POST) => locks::acquire(app, received).await,
        (Place::RenewLock(id), Method::POST) => locks::renew(app, id, received).await,
        (Place::Lock(id), Method::DELETE) => locks::release(app, id, received).await,
        (Place::Lock(id), Method::GET) => locks::show(app, id, received).await,
        (Place::Locks, Method::GET) => locks::list(app, received).await,
        (Place::Resource(name), Method::GET) => resources::explain(app, name, received).await,
        (Place::ForceRelease(name), Method::POST) => resources::force_release(app, name, received).await,
        (Place::ValidateToken, Method::POST) => resources::validate(app, received).await,
        (Place::Fences, Method::GET) => fences::list(app, received),
        (Place::Identity, Method::GET) => identity::show(app, received).await,
        (Place::FenceReport, Method::POST) => fences::report(app, received).await,
        (Place::Sessions, Method::POST) => sessions::open(app, received).await,
        (Place::Sessions, Method::GET) => sessions::list(app, received).await,
        (Place::Session(id), Method::GET) => sessions::show(app, id, received).await,
        (Place::Session(id), Method::DELETE) => sessions::close(app, id, received).await,
        (Place::RenewSession(id), Method::POST) => sessions::renew(app, id, received).await,
        (Place::Campaign(name), Method::POST) => elections::campaign(app, name, received).await,
        (Place::Election(name), Method::GET) => elections::show(app, name, received).await,
        (Place::Proclaim(name), Method::POST) => elections::proclaim(app, name, received).await,
        (Place::Resign(name), Method::POST) => elections::resign(app, name, received).await,
        (Place::Observe(name), Method::GET) => observe::stream(app, name, received),
        (Place::Events, Method::GET) => events::stream(app, received),
        (Place::Audit, Method::GET) => audit::list(app, received).await,
        (Place::AuditVerify, Method::GET) => audit::verify(app, received).await,
        (Place::UpgradeFinish, Method::POST) => nodes::finish_upgrade(app, received).await,
        (Place::Backups, Method::POST) => backups::note(app, received).await,
        (Place::Credentials, Method::POST) => credentials::create(app, received).await,
        (Place::Credentials, Method::GET) => credentials::list(app, received).await,
        (Place::Credential(id), Method::DELETE) => credentials::revoke(app, id, received).await,
        (Place::Status, Method::GET) => health::status(app, received).await,
        (Place::Healthz, Method::GET) => health::alive(received),
        (Place::Readyz, Method::GET) => health::ready(app, received).await,
        (Place::Metrics, Method::GET) => health::metrics(app, received).await,
        (Place::OpenApi, Method::GET) => health::openapi(received),
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
