//! gRPC in front of a node, on the same port as HTTP: unary calls, the session stream, health and reflection.
//!
//! Everything that is asked goes the same way as over HTTP: parsed into the vocabulary of the table, submitted, told.
//! What is kept here is only which stream a held lease belongs to, so that its loss can be pushed ([`Losses`]).

mod connection;
mod convert;
mod losses;
mod problem;
mod session;
mod unary;

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use leasehold_proto::v1::locks_server::LocksServer;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthService;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use crate::http::App;

pub(crate) use connection::{is_http2, serve_connection};
pub(crate) use losses::Losses;
use unary::LocksService;

/// A frame or request is at most this large: hundreds of acquires, far below what one slot of a journal takes.
const MESSAGE_BYTES: usize = 1 << 20;

/// Answers one gRPC request.
async fn answer(app: &Arc<App>, request: http::Request<Incoming>) -> http::Response<Body> {
    match service_of(request.uri().path()) {
        LocksServer::<LocksService>::NAME => {
            let service = LocksServer::new(LocksService::new(Arc::clone(app)));
            call(service.max_decoding_message_size(MESSAGE_BYTES), request).await
        }
        HealthServer::<HealthService>::NAME => call(health(app), request).await,
        "grpc.reflection.v1.ServerReflection" => call(reflection(), request).await,
        _ => tonic::Status::unimplemented("no such service").into_http(),
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

/// Serving as long as the node is active: asked anew each time, so that it cannot be out of date.
fn health(app: &App) -> HealthServer<impl Health> {
    let status = match app.handle.status().role {
        leasehold_node::Role::Active => ServingStatus::Serving,
        leasehold_node::Role::Standby => ServingStatus::NotServing,
    };
    let (mut reporter, server) = tonic_health::server::health_reporter();
    let _ = &mut reporter;
    health_with(server, reporter, status)
}

fn reflection() -> ServerReflectionServer<impl ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(leasehold_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the committed descriptors are valid")
}
