//! Passing a request on to the service, and its answer back.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::serve::Body;

/// Headers that are about one connection.
const HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A service that is reached by plain HTTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upstream {
    authority: Authority,
    path: String,
}

/// An address that is none, or none that the proxy can reach.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the service must be an http:// address with a host, not {0:?}")]
pub struct InvalidUpstream(String);

impl Upstream {
    /// The service at `http://host:port/path`. TLS is not spoken: the proxy belongs beside the service.
    ///
    /// # Errors
    /// Another scheme, no host, a query.
    pub fn parse(url: &str) -> Result<Self, InvalidUpstream> {
        let invalid = || InvalidUpstream(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let plain = uri.scheme() == Some(&Scheme::HTTP) && uri.query().is_none();
        let authority = uri.authority().filter(|_| plain).ok_or_else(invalid)?.clone();
        Ok(Self { authority, path: uri.path().trim_end_matches('/').to_owned() })
    }

    fn uri(&self, asked: &Uri) -> Option<Uri> {
        let rest = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.authority.clone());
        uri.path_and_query(format!("{}{rest}", self.path)).build().ok()
    }
}

/// Sends requests to the service.
#[derive(Clone, Debug)]
pub(super) struct Forwarder {
    client: Client<HttpConnector, Body>,
    upstream: Upstream,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The request was not sent.
    NotSent(String),
    /// It may have been sent: the service may be at work on it.
    Unknown(String),
}

impl Forwarder {
    pub(super) fn new(upstream: Upstream) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(Duration::from_secs(5)));
        connector.set_nodelay(true);
        Self { client: Client::builder(TokioExecutor::new()).build(connector), upstream }
    }

    /// The request as the service gets it.
    pub(super) fn prepare<B>(&self, request: Request<B>, peer: SocketAddr) -> Option<Request<B>> {
        let (mut parts, body) = request.into_parts();
        parts.uri = self.upstream.uri(&parts.uri)?;
        parts.version = Version::HTTP_11;
        let asked_host = parts.headers.remove(header::HOST);
        strip(&mut parts.headers);
        // The proxy has asked for the body itself, or the service answers without it.
        parts.headers.remove(header::EXPECT);
        let host = HeaderValue::from_str(self.upstream.authority.as_str()).ok()?;
        parts.headers.insert(header::HOST, host);
        let peer = HeaderValue::from_str(&peer.ip().to_string()).ok()?;
        parts.headers.append("x-forwarded-for", peer);
        parts.headers.extend(asked_host.map(|host| (HeaderName::from_static("x-forwarded-host"), host)));
        parts.headers.append(header::VIA, HeaderValue::from_static("1.1 leasehold-fence"));
        Some(Request::from_parts(parts, body))
    }

    /// Sends it and waits for the head of the answer.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Unanswered> {
        match self.client.request(request).await {
            Ok(mut response) => {
                strip(response.headers_mut());
                Ok(response)
            }
            Err(error) if error.is_connect() => Err(Unanswered::NotSent(error.to_string())),
            Err(error) => Err(Unanswered::Unknown(error.to_string())),
        }
    }
}

/// Removes what is about one connection, by name and as the `Connection` header names it.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// A body whose frames come from a task that reads the service's answer to its end, whoever else is still listening.
pub(super) struct Piped(pub(super) tokio::sync::mpsc::Receiver<Piece>);

/// A frame, or the news that there will be no more although it is not the end.
pub(super) type Piece = Result<hyper::body::Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>>;

impl hyper::body::Body for Piped {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_about_a_connection_stay_with_it() {
        let upstream = Upstream::parse("http://127.0.0.1:9/base/").unwrap();
        let request = Request::post("/a/b?c=d")
            .header("host", "shop.example")
            .header("connection", "close, X-Secret")
            .header("x-secret", "1")
            .header("te", "trailers")
            .header("upgrade", "websocket")
            .header("x-fencing-token", "5");
        let peer = "10.1.2.3:4".parse().unwrap();
        let sent = Forwarder::new(upstream).prepare(request.body(()).unwrap(), peer).unwrap();
        assert_eq!(sent.uri(), "http://127.0.0.1:9/base/a/b?c=d");
        let header = |name: &str| sent.headers().get(name).map(|value| value.to_str().unwrap());
        for name in ["connection", "x-secret", "te", "upgrade"] {
            assert_eq!(header(name), None, "{name}");
        }
        assert_eq!((header("host"), header("x-fencing-token")), (Some("127.0.0.1:9"), Some("5")));
        assert_eq!(
            (header("x-forwarded-for"), header("x-forwarded-host")),
            (Some("10.1.2.3"), Some("shop.example"))
        );
    }

    #[test]
    fn only_plain_http_with_a_host() {
        for url in ["https://host/", "http:///x", "host:80", "http://h/?q=1", "", "ftp://h"] {
            assert!(Upstream::parse(url).is_err(), "{url}");
        }
    }
}
