//! Sends spans to a collector: OTLP over HTTP, a batch at a time, and what cannot be sent is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, warn};

use crate::otlp::{ExportRequest, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans};
use crate::span::Span;
use crate::tracer::Settings;

/// Spans in one request.
const BATCH: usize = 512;
/// The exporter rests this long after each request, so that a quiet server sends a few spans together.
const REST: Duration = Duration::from_millis(200);
/// A collector that does not answer within this is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const PATH: &str = "/v1/traces";

/// What the exporter is told.
pub(crate) enum Job {
    /// A span is over.
    Span(Box<Span>),
    /// Somebody waits until everything before this has left.
    Flush(oneshot::Sender<()>),
}

/// The collector's address makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the address of a collector, such as http://127.0.0.1:4318; TLS is left to a collector nearby"
)]
pub struct InvalidEndpoint(String);

/// Where spans are sent.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint(Uri);

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = || InvalidEndpoint(text.to_owned());
        let mut parts = text.parse::<Uri>().map_err(|_| invalid())?.into_parts();
        if parts.scheme != Some(Scheme::HTTP) {
            return Err(invalid());
        }
        if parts.path_and_query.as_ref().is_none_or(|path| path.as_str() == "/") {
            parts.path_and_query = Some(PathAndQuery::from_static(PATH));
        }
        Uri::from_parts(parts).map(Self).map_err(|_| invalid())
    }
}

/// Exports until nobody has a span to tell any more.
pub(crate) async fn run(
    endpoint: Endpoint,
    settings: Settings,
    mut jobs: mpsc::Receiver<Job>,
    dropped: Arc<AtomicU64>,
) {
    let mut exporter = Exporter::new(endpoint, &settings);
    let mut batch = Vec::with_capacity(BATCH);
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let (mut spans, mut flushed) = (Vec::with_capacity(batch.len()), Vec::new());
        for job in batch.drain(..) {
            match job {
                Job::Span(span) => spans.push(*span),
                Job::Flush(done) => flushed.push(done),
            }
        }
        dropped.fetch_add(exporter.send(spans).await as u64, Relaxed);
        // Somebody who waits has more to say only after this.
        let is_hurried = !flushed.is_empty();
        for done in flushed {
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
        }
        if !is_hurried {
            tokio::time::sleep(REST).await;
        }
    }
}

struct Exporter {
    client: Client<HttpConnector, Full<Bytes>>,
    endpoint: Uri,
    resource: Resource,
    /// Whether the last request failed: only a change is worth a line in the log.
    is_failing: bool,
}

impl Exporter {
    fn new(endpoint: Endpoint, settings: &Settings) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(PATIENCE));
        let attributes = [("service.name", &settings.service), ("service.instance.id", &settings.instance)];
        let attributes = attributes.map(|(key, value)| KeyValue::new(key, value.clone().into()));
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            endpoint: endpoint.0,
            resource: Resource { attributes: attributes.into() },
            is_failing: false,
        }
    }

    /// How many spans were lost.
    async fn send(&mut self, spans: Vec<Span>) -> usize {
        if spans.is_empty() {
            return 0;
        }
        let number = spans.len();
        let failed = match tokio::time::timeout(PATIENCE, self.client.request(self.request(spans))).await {
            Ok(Ok(answer)) if answer.status().is_success() => None,
            Ok(Ok(answer)) => Some(answer.status().to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        match &failed {
            Some(why) if !self.is_failing => {
                warn!(event = "traces_lost", endpoint = %self.endpoint, %why, "the collector takes no traces");
            }
            Some(why) => debug!(event = "traces_lost", endpoint = %self.endpoint, %why, spans = number),
            None => {}
        }
        self.is_failing = failed.is_some();
        if self.is_failing { number } else { 0 }
    }

    fn request(&self, spans: Vec<Span>) -> Request<Full<Bytes>> {
        let scope =
            Scope { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let spans = spans.into_iter().map(Into::into).collect();
        let export = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        };
        let mut request = Request::new(Full::new(Bytes::from(export.encode_to_vec())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_a_path_has_the_usual_one() {
        let uri = |text| Endpoint::parse(text).map(|endpoint| endpoint.0.to_string());
        assert_eq!(uri("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(uri("http://collector:4318/").unwrap(), "http://collector:4318/v1/traces");
        assert_eq!(uri("http://c/x/v1/traces").unwrap(), "http://c/x/v1/traces");
        for text in ["", "collector:4318", "https://collector", "ftp://x"] {
            assert!(uri(text).is_err(), "{text}");
        }
    }
}
