//! One HTTP/2 connection: gRPC, and HTTP as over HTTP/1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderValue, Request, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tracing::debug;

use super::problem;
use crate::config::patience;
use crate::http::connection::{Activity, InFlight, WatchedStream};
use crate::http::{self, App, DURABILITY, guard};

/// Every HTTP/2 connection begins with `PRI * HTTP/2.0`; no method of HTTP/1 that we serve begins like that.
const PREFACE: &[u8] = b"PRI";
/// Requests at the same time on one connection: a process with many sessions, not a flood.
const STREAMS: u32 = 1_000;
/// What may be under way in one direction: many full frames, so that a pipelined session never waits for a window.
const WINDOW: u32 = 1 << 20;
/// A peer that is gone without a word is noticed after this and [`PING_PATIENCE`].
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_PATIENCE: Duration = Duration::from_secs(10);
/// Decoded head of one request.
const HEAD_BYTES: u32 = 32 * 1024;

type Body = UnsyncBoxBody<Bytes, tonic::Status>;

/// Whether the client begins to speak HTTP/2. Looks without taking; a client that says nothing speaks HTTP/1, whose
/// patience then ends it.
pub(crate) async fn is_http2(socket: &TcpStream) -> bool {
    let look = async {
        let mut begin = [0; PREFACE.len()];
        loop {
            match socket.peek(&mut begin).await {
                Ok(n) if n >= PREFACE.len() => return begin == PREFACE,
                // A first byte that does not fit, or the end, decides.
                Ok(n) if n == 0 || begin[..n] != PREFACE[..n] => return false,
                // Part of it: the rest follows at once or never, and peeking is always ready now.
                Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(_) => return false,
            }
        }
    };
    tokio::time::timeout(patience::LOOK, look).await.unwrap_or(false)
}

/// Serves until the client leaves, is silent for too long, or `drain` turns true.
pub(crate) async fn serve_connection<S>(
    socket: S,
    app: Arc<App>,
    activity: Arc<Activity>,
    mut drain: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(WatchedStream::new(socket, Arc::clone(&activity)));
    let service = service_fn(|request| {
        let (app, activity) = (Arc::clone(&app), Arc::clone(&activity));
        async move { Ok::<_, Infallible>(answer(&app, request, &activity).await) }
    });
    let mut protocol = http2::Builder::new(TokioExecutor::new());
    protocol
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_header_list_size(HEAD_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_PATIENCE);
    let mut served = std::pin::pin!(protocol.serve_connection(io, service));
    let mut stale = std::pin::pin!(activity.until_stale());
    let mut draining = std::pin::pin!(http::draining(&mut drain));
    let mut drained = false;
    loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "connection ended");
                }
                return;
            }
            _ = draining.as_mut(), if !drained => {
                drained = true;
                served.as_mut().graceful_shutdown();
            }
            () = stale.as_mut() => return,
        }
    }
}

async fn answer(app: &Arc<App>, request: Request<Incoming>, activity: &Arc<Activity>) -> Response<Body> {
    let is_grpc = |value: &HeaderValue| value.as_bytes().starts_with(b"application/grpc");
    if !request.headers().get(CONTENT_TYPE).is_some_and(is_grpc) {
        return http::answer(app, request, activity)
            .await
            .map(|body| body.map_err(|never| match never {}).boxed_unsync());
    }
    let in_flight = activity.begin();
    let mut response = match guard::check(&app.hosts, request.uri(), request.headers()) {
        Ok(()) => super::answer(app, request, &activity.caller).await,
        Err(refused) => problem::status(refused).into_http(),
    };
    // What was passed on says it already: that of the node that decided.
    response.headers_mut().entry(&DURABILITY).or_insert_with(|| app.durability.clone());
    response.map(|body| Busy { body, _in_flight: in_flight }.boxed_unsync())
}

/// A body during which its connection is not idle.
struct Busy {
    body: tonic::body::Body,
    _in_flight: InFlight,
}

impl hyper::body::Body for Busy {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, tonic::Status>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
