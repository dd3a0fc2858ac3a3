//! A reverse proxy that fences a service nobody can change.
//!
//! Guarantee: **ordered**. Requests reach the service in the order of their tokens: a higher token is let through only
//! when every request that was let through with a lower one has been answered, whole; from then on lower ones get 409
//! with both tokens. What it cannot promise is *atomic*: the service does not know the token.
//!
//! 1. The maximum and a note of every request in flight are stored ([`Flights`]) before the request is sent. So the
//!    order holds between several proxies, and across the crash of one.
//! 2. A request that the service never answered keeps the resource closed to higher tokens for the drain time, then is
//!    logged as `fence_order_unknown` and counted. So does a request of a proxy that has died: its notes beat no more.
//! 3. When the stored state is out of reach, the answer is 503. A state in memory is for tests: at a stage that rejects,
//!    the answer is 503 too.
//!
//! What breaks the order nevertheless: a service that goes on with a request after its connection has ended, for longer
//! than the drain time; a proxy that is stopped between its check and the sending, for longer than the drain time;
//! clients that go around the proxy.
//!
//! Requests that only read (GET, HEAD, OPTIONS, TRACE) pass unchecked. It speaks HTTP/1.1 without TLS on both sides; the
//! answer to a request is streamed, as its body is.
//!
//! [`Proxy`] is the server; [`Config`] says where to and which requests; [`open`] opens the state by its address.

mod flights;
mod forward;
mod gate;
mod naming;
mod service;
mod tally;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use flights::{
    Answer, Entry, Flight, Flights, MemoryFlights, Note, OpenError, PostgresFlights, RedisFlights,
    SqliteFlights, open,
};
use forward::Forwarder;
pub use forward::{InvalidUpstream, Upstream};
use gate::Gate;
use http::{Response, StatusCode};
pub use naming::{InvalidNaming, Naming};
use service::Service;
use tally::Tally;
use tokio::net::TcpListener;

use crate::http::problem;
use crate::metrics::FenceMetrics;
use crate::rollout::Rollout;
pub use crate::serve::Limits;
use crate::serve::{self, Body};
use crate::signed::Checker;

/// What becomes of writing requests that no rule of [`Naming`] fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unmatched {
    /// They get 403: a path that was forgotten is noticed.
    #[default]
    Refuse,
    /// They pass unchecked.
    Pass,
}

/// Where to, and which requests.
#[derive(Clone, Debug)]
pub struct Config {
    /// The service.
    pub upstream: Upstream,
    /// Which lock guards what a request writes.
    pub naming: Naming,
    /// What becomes of writing requests that have no lock.
    pub unmatched: Unmatched,
    /// How long a request without an answer keeps its resource closed. 30 s: longer than services work on after their
    /// caller has gone.
    pub drain: Duration,
    /// How long the service may take for a whole answer, body included; after that it counts as never answered. 5 min.
    pub answer_within: Duration,
    /// How long a request waits for those with lower tokens before it gets 503. 5 s more than the drain time, so that
    /// one that came early gets through when the drain time has passed.
    pub patience: Duration,
    /// What one caller and all may use.
    pub limits: Limits,
    /// Which signed tokens count; without it tokens are plain numbers.
    pub checker: Option<Arc<Checker>>,
}

impl Config {
    /// With the defaults for everything else.
    pub fn new(upstream: Upstream, naming: Naming) -> Self {
        let drain = Duration::from_secs(30);
        Self {
            upstream,
            naming,
            unmatched: Unmatched::default(),
            drain,
            answer_within: Duration::from_secs(300),
            patience: drain + Duration::from_secs(5),
            limits: Limits::default(),
            checker: None,
        }
    }

    /// With this drain time, and the patience that goes with it.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self.patience = drain + Duration::from_secs(5);
        self
    }
}

/// The reverse proxy, ready to serve.
pub struct Proxy {
    service: Arc<Service>,
    metrics: Arc<FenceMetrics>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("config", &self.service.config).finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy over this state. `metrics` is what the roll-out's observer counts into; its page is served with the
    /// proxy's own numbers.
    pub fn new(
        config: Config,
        flights: Box<dyn Flights>,
        rollout: Arc<Rollout>,
        metrics: Arc<FenceMetrics>,
    ) -> Self {
        let tally = Arc::new(Tally::default());
        let gate = Gate::new(flights, config.drain, tally);
        let forwarder = Forwarder::new(config.upstream.clone());
        Self { service: Arc::new(Service { config, forwarder, gate, rollout }), metrics }
    }

    /// Serves until `shutdown` is ready; then accepts no more, and waits for the requests under way up to the drain
    /// time. What is in doubt by then stays noted in the store, for the next proxy.
    ///
    /// `admin`, if given, serves `/metrics` and `/healthz`, on an address of its own: every path of the other one is
    /// the service's.
    ///
    /// # Errors
    /// None at present; a listener that fails is tried again.
    pub async fn serve(
        self,
        listener: TcpListener,
        admin: Option<TcpListener>,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Self { service, metrics } = self;
        let keeper = tokio::spawn({
            let service = service.clone();
            async move { service.gate.keep().await }
        });
        let page = admin.map(|admin| tokio::spawn(serve_admin(admin, service.clone(), metrics)));
        // Each request under way holds one; when all are gone, the last one has ended.
        let (alive, mut ended) = tokio::sync::mpsc::channel::<()>(1);
        let (limits, grace) = (service.config.limits, service.config.drain);
        let handler = {
            let service = service.clone();
            move |request, peer| service.clone().answer(request, peer, alive.clone())
        };
        let served = serve::serve(listener, limits, grace, shutdown, handler).await;
        let _ = tokio::time::timeout(grace, ended.recv()).await;
        keeper.abort();
        page.inspect(tokio::task::JoinHandle::abort);
        served
    }
}

async fn serve_admin(
    listener: TcpListener,
    service: Arc<Service>,
    metrics: Arc<FenceMetrics>,
) -> io::Result<()> {
    let handler = move |request: http::Request<hyper::body::Incoming>, _| {
        let (service, metrics) = (service.clone(), metrics.clone());
        async move {
            match request.uri().path() {
                "/metrics" => plain(metrics.page() + &service.gate.tally.page()),
                "/healthz" => plain("ok\n".to_owned()),
                _ => serve::text(problem::problem(StatusCode::NOT_FOUND, "not_found", "no such page", "")),
            }
        }
    };
    serve::serve(listener, Limits::default(), Duration::ZERO, std::future::pending(), handler).await
}

fn plain(text: String) -> Response<Body> {
    let mut response = Response::new(serve::whole(text));
    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}
