//! A small HTTP/1 server for the proxy and the storage: accept loop with limits, graceful end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A body of whatever kind.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// What a server allows to one peer and to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at the same time; more wait to be accepted. 1,000: each may hold a request with its buffers.
    pub connections: usize,
    /// From the first byte of a request, or the end of the one before, to the end of its headers. 10 s stops peers that
    /// send a byte now and then.
    pub headers_within: Duration,
    /// Bytes of headers. 64 KiB, more than any service of ours sends.
    pub header_bytes: usize,
    /// Bytes of a request's body. 64 MiB.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            headers_within: Duration::from_secs(10),
            header_bytes: 64 * 1024,
            body_bytes: 64 * 1024 * 1024,
        }
    }
}

/// A whole body.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// An answer whose body is text.
pub(crate) fn text(response: Response<String>) -> Response<Body> {
    response.map(whole)
}

/// Serves until `shutdown` is ready; then accepts no more and waits up to `grace` for the requests under way.
pub(crate) async fn serve<H, F>(
    listener: TcpListener,
    limits: Limits,
    grace: Duration,
    shutdown: impl Future<Output = ()>,
    handler: H,
) -> io::Result<()>
where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (place, (stream, peer)) = tokio::select! {
            () = &mut shutdown => break,
            next = accept(&listener, &places) => match next {
                Ok(next) => next,
                // The peer left again, or there are no file handles just now: neither ends the server.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let handler = handler.clone();
        let service = service_fn(move |request| {
            let answer = handler(request, peer);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(limits.headers_within);
        builder.max_buf_size(limits.header_bytes.max(8 * 1024));
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A connection that broke was the peer's; what became of its request is known to the handler.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    // What is still under way after the grace ends with the process.
    let _ = tokio::time::timeout(grace, graceful.shutdown()).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(tokio::sync::OwnedSemaphorePermit, (tokio::net::TcpStream, SocketAddr))> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    Ok((place, listener.accept().await?))
}
