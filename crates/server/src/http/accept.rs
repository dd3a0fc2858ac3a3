//! The accept loop: connection cap, patience, graceful end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use leasehold_api::{DURABILITY_HEADER, EPOCH_HEADER, ErrorCode, PROBLEM_CONTENT_TYPE, Problem};
use leasehold_node::Left;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::App;
use super::connection::{Activity, WatchedStream};
use super::moves::Moves;
use crate::auth::ConnectionCaller;
use crate::config::patience;
use crate::grpc;
use crate::tls::{self, Tls};

/// A head has at most this many bytes: a path with a name of 512 bytes, encoded, and room for what proxies add.
const HEAD_BYTES: usize = 32 * 1024;
/// Headers of a request.
const HEADERS: usize = 64;
/// After a failed accept (out of file descriptors, mostly) the loop rests this long instead of spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` turns true, then lets what has begun finish. An HTTP/1 request belongs to the app that is the
/// present one when it arrives, a gRPC connection to the one when it began. Cancel-safe: dropping it closes everything.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    present: watch::Receiver<Arc<App>>,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(present.borrow().limits.connections));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = super::draining(&mut stop) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    match Arc::clone(&room).try_acquire_owned() {
                        Ok(place) => {
                            let begun = begin(socket, tls.clone(), present.clone(), stop.clone(), place);
                            drop(connections.spawn(begun));
                        }
                        // Without a handshake there is nothing that a client of TLS would understand.
                        Err(_) if tls.is_some() => {}
                        Err(_) => {
                            drop(connections.spawn(turn_away(socket, told_above_cap(&present.borrow()))));
                        }
                    }
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let all_done = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(patience::DRAIN, all_done).await.is_err() {
        warn!("connections were cut at shutdown");
    }
}

/// The whole answer to a connection above the cap, whose request is not read.
fn told_above_cap(app: &App) -> Vec<u8> {
    let problem = Problem::new(ErrorCode::Overloaded, "too many connections are open");
    let body = serde_json::to_vec(&problem).expect("a problem has string keys and no failing parts");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: {PROBLEM_CONTENT_TYPE}\r\n\
         {EPOCH_HEADER}: {}\r\n{DURABILITY_HEADER}: {}\r\ncontent-length: {}\r\n\r\n",
        app.epoch.to_str().expect("a UUID and a number"),
        app.durability.to_str().expect("a word"),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

async fn turn_away(mut socket: TcpStream, told: Vec<u8>) {
    let told = async {
        socket.write_all(&told).await?;
        socket.shutdown().await
    };
    // The client may be gone already, which is as good.
    drop(tokio::time::timeout(patience::LINGER, told).await);
}

/// Finds out what a connection speaks, and serves it.
async fn begin(
    socket: TcpStream,
    tls: Option<Arc<Tls>>,
    present: watch::Receiver<Arc<App>>,
    mut stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    if let Err(error) = socket.set_nodelay(true) {
        debug!(%error, "a connection ended before it began");
        return;
    }
    let metrics = Arc::clone(&present.borrow().metrics);
    let _open = metrics.connection();
    let Some(tls) = tls else {
        let is_http2 = tokio::select! {
            is_http2 = grpc::is_http2(&socket) => is_http2,
            () = super::draining(&mut stop) => return,
        };
        return connection(socket, is_http2, Arc::default(), present, stop).await;
    };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(patience::HANDSHAKE, tls.acceptor().accept(socket)) => shaken,
        () = super::draining(&mut stop) => return,
    };
    match shaken {
        Ok(Ok(stream)) => {
            let handshake = stream.get_ref().1;
            let is_http2 = tls::chose_http2(handshake);
            let caller = ConnectionCaller::with_certificate(tls::client_names(handshake));
            connection(stream, is_http2, Activity::of(caller), present, stop).await;
        }
        Ok(Err(error)) => debug!(%error, "a handshake failed"),
        Err(_) => debug!("a handshake took too long"),
    }
}

/// Serves HTTP/2 beside the loop if there is a place: such a connection mostly carries a session stream, whose every frame goes
/// to the loop, and whose every answer comes from there.
async fn http2_connection<S>(mut socket: S, app: Arc<App>, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Moves + Unpin + Send + 'static,
{
    let drain = app.drain.clone();
    // Without a descriptor for its line it is served where nothing gets stuck.
    let Some((line, beside)) = socket.line().ok().zip(app.handle.beside_the_loop()) else {
        return grpc::serve_connection(socket, app, activity, drain).await;
    };
    let serve = async move {
        match socket.arrive() {
            Ok(()) => grpc::serve_connection(socket, app, activity, drain).await,
            Err(error) => debug!(%error, "a connection could not be moved"),
        }
    };
    if beside.run(serve).await == Left::Stuck {
        // Its client comes back, is served by a worker, and is told that nothing moves (N5).
        line.cut();
    }
}

/// A change of the active node closes no HTTP/1 connection: a client whose request is on its way would be left without an
/// answer, and without knowing whether there was one. Only the end of the server does, and only between requests.
async fn connection<S>(
    socket: S,
    is_http2: bool,
    activity: Arc<Activity>,
    present: watch::Receiver<Arc<App>>,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Moves + Unpin + Send + 'static,
{
    let now = || Arc::clone(&present.borrow());
    if is_http2 {
        return http2_connection(socket, now(), activity).await;
    }
    let io = TokioIo::new(WatchedStream::new(socket, Arc::clone(&activity)));
    let service = service_fn(|request| {
        let (app, activity) = (now(), Arc::clone(&activity));
        async move { Ok::<_, Infallible>(super::answer(&app, request, &activity).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.pipeline_flush(true).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let mut served = std::pin::pin!(protocol.serve_connection(io, service));
    let mut stale = std::pin::pin!(activity.until_stale());
    let mut draining = std::pin::pin!(super::draining(&mut stop));
    let mut drained = false;
    loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => {
                // A client that leaves or sends no HTTP is its own affair, never an error of ours.
                if let Err(error) = ended {
                    debug!(%error, "connection ended");
                }
                return;
            }
            () = draining.as_mut(), if !drained => {
                drained = true;
                served.as_mut().graceful_shutdown();
            }
            () = stale.as_mut() => return,
        }
    }
}
