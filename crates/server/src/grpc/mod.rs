//! gRPC in front of a node, on the same port as HTTP: unary calls, the session stream, health and reflection.
//!
//! Everything that is asked goes the same way as over HTTP: parsed into the vocabulary of the table, submitted, told.
//! What is kept here is only which stream a session has, so that the loss of its leases can be pushed ([`Losses`]).

mod connection;
mod convert;
mod elections;
mod health;
mod lookups;
mod losses;
mod problem;
mod session;
mod unary;
mod watch;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use ::http::request::Parts;
use hyper::body::Incoming;
use leasehold_api::Problem;
use leasehold_proto::v1::locks_server::LocksServer;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use crate::auth::{ConnectionCaller, Demand};
use crate::forwarding::{is_forwarded, is_of_a_node};
use crate::http::App;
use crate::http::forward::not_active;
use crate::traces;
use health::HealthService;
use unary::LocksService;

pub(crate) use connection::{is_http2, serve_connection};
pub(crate) use losses::Losses;
pub(crate) use problem::status;

/// A frame or request is at most this large: hundreds of acquires, far below what one slot of a journal takes.
const MESSAGE_BYTES: usize = 1 << 20;
/// No method of ours has a longer path; what else is asked for is not written into traces.
const LONGEST_METHOD: usize = 64;
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";

/// Answers one gRPC request.
async fn answer(
    app: &Arc<App>,
    request: http::Request<Incoming>,
    connection: &ConnectionCaller,
) -> http::Response<Body> {
    let span = app.traces.request(request.headers(), || span_name(request.uri().path()));
    match &span {
        None => answer_untraced(app, request, connection).await,
        Some(span) => traces::within(span, Box::pin(answer_untraced(app, request, connection))).await,
    }
}

async fn answer_untraced(
    app: &Arc<App>,
    request: http::Request<Incoming>,
    connection: &ConnectionCaller,
) -> http::Response<Body> {
    let (mut head, body) = request.into_parts();
    let app = match admit(app, &mut head, connection) {
        Ok(app) => app,
        Err(problem) => return problem::status(problem).into_http(),
    };
    if app.forward.is_some() {
        traces::hand_on(&mut head.headers);
    }
    let request = http::Request::from_parts(head, body);
    match service_of(request.uri().path()) {
        LocksServer::<LocksService>::NAME if app.forward.is_some() => elsewhere(&app, request).await,
        LocksServer::<LocksService>::NAME => {
            let service = LocksServer::new(LocksService::new(app)).max_decoding_message_size(MESSAGE_BYTES);
            call(service, request).await
        }
        HealthServer::<HealthService>::NAME => {
            call(HealthServer::new(HealthService::new(app)), request).await
        }
        REFLECTION => call(reflection(), request).await,
        _ => tonic::Status::unimplemented("no such service").into_http(),
    }
}

/// Who asks; a request that is passed on is asked who it is by the active node.
fn admit(app: &Arc<App>, head: &mut Parts, connection: &ConnectionCaller) -> Result<Arc<App>, Problem> {
    if is_of_a_node(&head.headers) {
        app.check_forwarded(head)?;
    }
    let demand = match service_of(head.uri.path()) {
        // Everybody may know whether the process lives.
        HealthServer::<HealthService>::NAME => Demand::Nothing,
        LocksServer::<LocksService>::NAME if app.forward.is_some() => {
            app.vouch(head, connection);
            Demand::Nothing
        }
        // Commands demand more by themselves.
        _ => Demand::SignedIn,
    };
    app.admit(demand, head, connection)
}

/// A standby passes everything on to the active node, streams included (N7). Where it cannot, clients learn where that
/// is, and may go there themselves.
async fn elsewhere(app: &App, request: http::Request<Incoming>) -> http::Response<Body> {
    let Some(forward) = &app.forward else {
        return problem::status(not_active("no active node")).into_http();
    };
    let passed_on = match is_forwarded(request.headers()) {
        true => Err(not_active("this node is not the active one")),
        false => forward.grpc(request).await,
    };
    passed_on.unwrap_or_else(|problem| {
        let mut status = problem::status(problem);
        if let Ok(url) = MetadataValue::try_from(forward.url()) {
            status.metadata_mut().insert("leasehold-active", url);
        }
        status.into_http()
    })
}

/// How the span of a request is called.
fn span_name(path: &str) -> Cow<'static, str> {
    match service_of(path) {
        LocksServer::<LocksService>::NAME if path.len() < LONGEST_METHOD => path.to_owned().into(),
        _ => "gRPC".into(),
    }
}

/// `package.Service` of `/package.Service/Method`.
fn service_of(path: &str) -> &str {
    path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default()
}

async fn call<S>(mut service: S, request: http::Request<Incoming>) -> http::Response<Body>
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>, Error = Infallible>,
{
    match service.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn reflection() -> ServerReflectionServer<impl ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(leasehold_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the committed descriptors are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_are_such_as_reflection_takes() {
        let _service = reflection();
        assert_eq!(service_of("/leasehold.v1.Locks/Acquire"), LocksServer::<LocksService>::NAME);
        assert_eq!(service_of("leasehold.v1.Locks"), "");
    }
}
