//! A standby brings requests to the active node, one hop and never two (N7).
//!
//! It decides nothing and remembers nothing. A request is sent once: whatever goes wrong after it may have arrived is
//! told as `outcome_unknown`, and the caller asks again under the same lease id or key, which is passed on. When the
//! caller leaves, the connection to the active node is closed with it, so that a wait ends there too. When the active
//! node changes, whatever is under way ends: see the server's lives.
//!
//! What is passed on is marked and proved: see [`crate::forwarding`].

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use leasehold_api::{ErrorCode, NodeSeen, Problem, REQUEST_KEY_HEADER};
use leasehold_node::{Active, Handle};
use tokio::sync::watch;

use super::answer::{Answer, AnswerBody};
use super::draining;
use super::nodes::KNOCK_PATH;
use crate::config::TlsFiles;
use crate::forwarding::{self, ABOUT, FORWARDED, ForwardedIdentity, IDENTITY};
use crate::peers::About;
use crate::tls::{PeerConnector, TlsError};

/// A node that does not take a connection within this is as good as gone.
const CONNECT: Duration = Duration::from_secs(1);
/// Idle connections to the active node are given up before it gives them up.
const IDLE: Duration = Duration::from_secs(20);
/// How long the active node may take to say that it is ready.
const READY: Duration = Duration::from_secs(1);
/// Largest list of nodes.
const KNOCK_BYTES: usize = 256 << 10;
/// Largest answer that is not a stream: a page of locks with their labels is far below.
const ANSWER_BYTES: usize = 64 << 20;

/// What of a request the active node needs to know.
const PASSED_ON: [HeaderName; 7] = [
    CONTENT_TYPE,
    ACCEPT,
    AUTHORIZATION,
    HeaderName::from_static(REQUEST_KEY_HEADER),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static(leasehold_trace::TRACEPARENT),
    HeaderName::from_static("tracestate"),
];
/// What of an answer the caller needs to know. Epoch and durability are those of the node that decided.
const PASSED_BACK: [HeaderName; 6] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    ALLOW,
    RETRY_AFTER,
    HeaderName::from_static(leasehold_api::EPOCH_HEADER),
    HeaderName::from_static(leasehold_api::DURABILITY_HEADER),
];

/// Connections to active nodes, kept from one to the next.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    http: Client<PeerConnector, Incoming>,
    grpc: Client<PeerConnector, Incoming>,
    probes: Client<PeerConnector, Empty<Bytes>>,
}

impl Connections {
    /// Nodes with TLS are held to the authorities that the files name.
    ///
    /// # Errors
    /// The authorities cannot be read.
    pub(crate) fn new(files: Option<&TlsFiles>) -> Result<Self, TlsError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let connector = PeerConnector::new(tcp.clone(), files, b"http/1.1")?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        let (http, probes) = (builder.build(connector.clone()), builder.build(connector));
        let grpc = builder.http2_only(true).build(PeerConnector::new(tcp, files, b"h2")?);
        Ok(Self { http, grpc, probes })
    }
}

/// The way to one active node, as long as it is the active one.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    connections: Connections,
    active: Active,
    /// The name and the address of this node.
    from: HeaderValue,
    /// Knows the secret of the nodes, and what there is to tell of this one.
    handle: Handle,
    /// Turns true when the active node changes, or this one is to end.
    over: watch::Receiver<bool>,
}

impl Forward {
    pub(crate) fn new(
        connections: Connections,
        active: Active,
        from: &str,
        handle: Handle,
        over: watch::Receiver<bool>,
    ) -> Self {
        let from = HeaderValue::from_str(from).unwrap_or(HeaderValue::from_static("standby"));
        Self { connections, active, from, handle, over }
    }

    /// Where the active node is.
    pub(crate) fn url(&self) -> &str {
        &self.active.url
    }

    /// Brings a request to the active node.
    pub(crate) async fn http(&self, request: Request<Incoming>) -> Result<Answer, Problem> {
        let is_read = request.method() == Method::GET;
        let request = self.outgoing(request, &PASSED_ON)?;
        let mut over = self.over.clone();
        let (head, body) = tokio::select! {
            answered = self.connections.http.request(request) => {
                answered.map_err(|error| self.failed(&error, is_read))?.into_parts()
            }
            () = draining(&mut over) => return Err(changed(is_read)),
        };
        let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let body = if is_stream { self.stream(body) } else { self.whole(body, is_read).await? };
        let mut answer = Response::new(body);
        *answer.status_mut() = head.status;
        copy(&head.headers, &PASSED_BACK, answer.headers_mut());
        Ok(answer)
    }

    /// Brings a gRPC request to the active node, with everything that belongs to it.
    pub(crate) async fn grpc(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<tonic::body::Body>, Problem> {
        let names: Vec<_> =
            request.headers().keys().filter(|name| *name != http::header::HOST).cloned().collect();
        let request = self.outgoing(request, &names)?;
        let mut over = self.over.clone();
        let answer = tokio::select! {
            answered = self.connections.grpc.request(request) => {
                answered.map_err(|error| self.failed(&error, false))?
            }
            () = draining(&mut over) => return Err(changed(false)),
        };
        Ok(answer.map(|body| tonic::body::Body::new(UntilOver::new(body, self.over.clone()))))
    }

    /// Whether the active node answers and is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        let answered = tokio::time::timeout(READY, self.probe("/readyz")).await;
        matches!(answered, Ok(Ok(answer)) if answer.status() == StatusCode::OK)
    }

    /// Shows the active node that this one is there; who else is, as far as it says.
    pub(crate) async fn knock(&self) -> Option<Vec<NodeSeen>> {
        let knocked = async {
            let answer = self.probe(KNOCK_PATH).await.ok()?;
            let told = Limited::new(answer.into_body(), KNOCK_BYTES).collect().await.ok()?.to_bytes();
            serde_json::from_slice(&told).ok()
        };
        tokio::time::timeout(READY, knocked).await.ok()?
    }

    async fn probe(&self, path: &'static str) -> Result<Response<Incoming>, Problem> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri(Some(PathAndQuery::from_static(path)))?;
        let request = self.marked(request, None);
        let answered = self.connections.probes.request(request).await;
        answered.map_err(|error| self.failed(&error, true))
    }

    fn outgoing(
        &self,
        request: Request<Incoming>,
        names: &[HeaderName],
    ) -> Result<Request<Incoming>, Problem> {
        let (mut head, body) = request.into_parts();
        let uri = self.uri(head.uri.path_and_query().cloned())?;
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut()) = (head.method, uri);
        copy(&head.headers, names, request.headers_mut());
        Ok(self.marked(request, head.extensions.remove()))
    }

    /// Says who passes a request on and for whom, and proves it.
    fn marked<B>(&self, request: Request<B>, identity: Option<ForwardedIdentity>) -> Request<B> {
        let (mut head, body) = request.into_parts();
        let status = self.handle.status();
        forwarding::strip(&mut head.headers);
        head.headers.insert(&FORWARDED, self.from.clone());
        head.headers.insert(&ABOUT, About::of(&status).header());
        // Without a secret nobody would believe it.
        if let Some(secret) = self.handle.secret() {
            if let Some(ForwardedIdentity(identity)) = identity {
                head.headers.insert(&IDENTITY, identity);
            }
            forwarding::sign(&secret, status.cluster, &mut head);
        }
        Request::from_parts(head, body)
    }

    fn uri(&self, path: Option<PathAndQuery>) -> Result<Uri, Problem> {
        let unusable = || not_active(format!("the active node's address {} cannot be used", self.active.url));
        let mut parts = self.active.url.parse::<Uri>().map_err(|_| unusable())?.into_parts();
        if parts.scheme != Some(Scheme::HTTP) && parts.scheme != Some(Scheme::HTTPS) {
            return Err(unusable());
        }
        parts.path_and_query = path;
        Uri::from_parts(parts).map_err(|_| unusable())
    }

    /// A whole answer arrives whole or not at all.
    async fn whole(&self, body: Incoming, is_read: bool) -> Result<AnswerBody, Problem> {
        let mut over = self.over.clone();
        tokio::select! {
            whole = Limited::new(body, ANSWER_BYTES).collect() => match whole {
                Ok(whole) => Ok(AnswerBody::Whole(whole.to_bytes())),
                Err(_) if is_read => Err(not_active("the active node broke off its answer")),
                Err(_) => Err(unknown("the active node broke off its answer")),
            },
            () = draining(&mut over) => Err(changed(is_read)),
        }
    }

    /// A stream ends when the active node ends it, or is not the active one any more.
    fn stream(&self, body: Incoming) -> AnswerBody {
        let pieces = stream::unfold((body, self.over.clone()), |(mut body, mut over)| async move {
            loop {
                let frame = tokio::select! {
                    biased;
                    () = draining(&mut over) => return None,
                    frame = body.frame() => frame?.ok()?,
                };
                if let Ok(bytes) = frame.into_data() {
                    return Some((bytes, (body, over)));
                }
            }
        });
        AnswerBody::Stream(Box::pin(pieces), None)
    }

    fn failed(&self, error: &ClientError, is_read: bool) -> Problem {
        let url = &self.active.url;
        if error.is_connect() || is_read {
            return not_active(format!("the active node at {url} cannot be reached"));
        }
        unknown(format!("the connection to the active node at {url} broke"))
    }
}

/// A request came to a node that can neither decide it nor pass it on; nothing happened.
pub(crate) fn not_active(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::NotActive, detail)
}

fn unknown(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::OutcomeUnknown, detail)
}

/// What was under way when the active node changed may have been decided there.
fn changed(is_read: bool) -> Problem {
    let detail = "the active node changed";
    if is_read { not_active(detail) } else { unknown(detail) }
}

fn copy(from: &HeaderMap, names: &[HeaderName], to: &mut HeaderMap) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

/// A stream ended: what was answered on it is true, and the rest is asked anew.
fn ended(detail: &str) -> tonic::Status {
    crate::grpc::status(not_active(detail))
}

/// A body that ends when the active node changes.
struct UntilOver {
    body: Incoming,
    over: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl UntilOver {
    fn new(body: Incoming, mut over: watch::Receiver<bool>) -> Self {
        Self { body, over: Box::pin(async move { draining(&mut over).await }) }
    }
}

impl hyper::body::Body for UntilOver {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, tonic::Status>>> {
        if self.over.as_mut().poll(cx).is_ready() {
            return std::task::Poll::Ready(Some(Err(ended("the active node changed"))));
        }
        let frame = std::task::ready!(std::pin::Pin::new(&mut self.body).poll_frame(cx));
        let broke = |_| ended("the connection to the active node broke");
        std::task::Poll::Ready(frame.map(|frame| frame.map_err(broke)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
