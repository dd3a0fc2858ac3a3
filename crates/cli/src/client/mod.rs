//! Asking a server over HTTP: one connection a request, which is plenty for a command that ends after one answer.

mod events;
mod servers;
mod stream;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use leasehold_api::StatusAnswer;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::timeout;

pub(crate) use events::{Events, ServerEvent};
pub(crate) use servers::{Server, Servers};
pub(crate) use stream::{Stream, connect};

use crate::failure::{Failure, Problem};

/// How long an answer may take beyond the wait that the request itself asks for.
const ANSWER: Duration = Duration::from_secs(10);
/// A look at who is there takes no longer: whoever waits has waited already.
const LOOK: Duration = Duration::from_secs(2);
/// Everything but the characters that mean nothing in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request before it is sent to any particular server.
pub(crate) struct Call {
    method: Method,
    path: String,
    body: Option<Bytes>,
    patience: Duration,
    /// What to do when the connection breaks after the request has left.
    when_lost: &'static str,
}

impl Call {
    /// A question. Losing its answer costs nothing.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None, "try again")
    }

    /// A change.
    pub(crate) fn post(path: impl Into<String>, body: &impl Serialize, when_lost: &'static str) -> Self {
        let body = serde_json::to_vec(body).expect("wire types have text keys and no failing parts");
        Self::new(Method::POST, path.into(), Some(body.into()), when_lost)
    }

    /// An ending.
    pub(crate) fn delete(path: impl Into<String>, when_lost: &'static str) -> Self {
        Self::new(Method::DELETE, path.into(), None, when_lost)
    }

    fn new(method: Method, path: String, body: Option<Bytes>, when_lost: &'static str) -> Self {
        Self { method, path, body, patience: ANSWER, when_lost }
    }

    /// Waits this much longer for the answer.
    pub(crate) fn waiting(mut self, wait: Duration) -> Self {
        self.patience += wait;
        self
    }

    fn request(&self, server: &Server) -> Result<Request<Full<Bytes>>, Failure> {
        let builder = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::HOST, server.authority())
            .header(header::USER_AGENT, concat!("leasehold/", env!("CARGO_PKG_VERSION")));
        let builder = match &self.body {
            Some(_) => builder.header(header::CONTENT_TYPE, "application/json"),
            None => builder,
        };
        let builder = match server.authorization()? {
            Some(credential) => builder.header(header::AUTHORIZATION, credential),
            None => builder,
        };
        let request = builder
            .body(Full::new(self.body.clone().unwrap_or_default()))
            .expect("method, path and headers are made of checked or encoded text");
        Ok(request)
    }
}

/// Text as one part of a path or query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A path with the parameters that are there.
pub(crate) fn with_query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// A good answer: as it came, for scripts, and readable as a wire type.
#[derive(Debug)]
pub(crate) struct Answer {
    server: String,
    /// The body, as the server wrote it.
    pub(crate) text: String,
}

impl Answer {
    /// The body as a wire type.
    ///
    /// # Errors
    /// [`Failure::Garbled`]: whoever answered is no Leasehold server, or one of another version.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let read = serde_json::from_str(&self.text);
        read.map_err(|error| Failure::Garbled { server: self.server.clone(), error: error.to_string() })
    }
}

/// Asks one of several servers.
pub(crate) struct Client {
    servers: Servers,
}

impl Client {
    /// Connects to nobody yet.
    pub(crate) fn new(servers: Servers) -> Self {
        Self { servers }
    }

    /// Sends the call to the first server that can be reached and does not say that another one is active. Once a
    /// request has left, it is never sent elsewhere: that is for the caller, who knows whether it may be repeated.
    pub(crate) async fn call(&self, call: &Call) -> Result<Answer, Failure> {
        let answer = self.body(call).await?;
        // Somebody else may listen there; what is passed on to a script is at least JSON.
        answer.read::<IgnoredAny>()?;
        Ok(answer)
    }

    /// The same for an answer that is plain text.
    pub(crate) async fn text(&self, call: &Call) -> Result<String, Failure> {
        Ok(self.body(call).await?.text)
    }

    /// What is wrong when somebody listens at the address who is no server of ours, or is not to be trusted. `None` if it is
    /// one, or if nobody is there. For those whose own way of asking cannot tell: a stream that meets a stranger just breaks.
    pub(crate) async fn stranger(&self) -> Option<Failure> {
        let first = self.servers.first().to_string();
        let looked = timeout(LOOK, self.call(&Call::get("/v1/status"))).await.ok()?;
        let (server, found) = match looked.and_then(|answer| answer.read::<StatusAnswer>()).err()? {
            Failure::Garbled { server, .. } => {
                (server, "what it says of its state is not understood".to_owned())
            }
            Failure::Lost { server, error, .. } => (server, error),
            failure @ (Failure::Insecure { .. } | Failure::Foreign { .. }) => return Some(failure),
            Failure::Problem(problem) if problem.is_foreign() => {
                (first, format!("{} where its state should be", problem.code))
            }
            _ => return None,
        };
        Some(Failure::Foreign { server, found })
    }

    async fn body(&self, call: &Call) -> Result<Answer, Failure> {
        let (server, response) = self.response(call).await?;
        let lost = |error: String| Failure::Lost { server: server.to_string(), error, hint: call.when_lost };
        let body = match timeout(call.patience, response.into_body().collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(lost(error.to_string())),
            Err(_) => return Err(lost("no answer in time".into())),
        };
        let (server, text) = (server.to_string(), String::from_utf8_lossy(&body).into_owned());
        Ok(Answer { server, text })
    }

    /// Opens a stream of events.
    pub(crate) async fn events(&self, call: &Call) -> Result<Events, Failure> {
        let (server, response) = self.response(call).await?;
        let kind = response.headers().get(header::CONTENT_TYPE);
        if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
            let error = "it is no stream of events".to_owned();
            return Err(Failure::Garbled { server: server.to_string(), error });
        }
        Ok(Events::new(server.to_string(), response.into_body()))
    }

    /// The first good answer's head; its body is still to come.
    async fn response(&self, call: &Call) -> Result<(&Server, Response<Incoming>), Failure> {
        let mut failure = None;
        for server in self.servers.iter() {
            match ask(server, call).await {
                Ok(response) => return Ok((server, response)),
                Err(Refused::Elsewhere(reason)) => failure = Some(reason),
                Err(Refused::Here(failure)) => return Err(failure),
            }
        }
        Err(match failure.expect("there is at least one server") {
            Failure::Unreachable { error, .. } => {
                Failure::Unreachable { tried: self.servers.to_string(), error }
            }
            other => other,
        })
    }
}

/// Why one server did not do it.
enum Refused {
    /// Nothing happened there; the next one may do it.
    Elsewhere(Failure),
    /// This is the answer, or something may have happened.
    Here(Failure),
}

async fn ask(server: &Server, call: &Call) -> Result<Response<Incoming>, Refused> {
    let request = call.request(server).map_err(Refused::Here)?;
    let stream = connect(server).await.map_err(Refused::Elsewhere)?;
    let lost = |error: String| {
        Refused::Here(Failure::Lost { server: server.to_string(), error, hint: call.when_lost })
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(|error| lost(error.to_string()))?;
    // The connection's task ends with the response body; its error is seen there too.
    tokio::spawn(connection);
    let response = match timeout(call.patience, sender.send_request(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) if error.is_parse() => return Err(Refused::Here(not_http(server))),
        Ok(Err(error)) => return Err(lost(error.to_string())),
        Err(_) => return Err(lost("no answer in time".into())),
    };
    match response.status() {
        StatusCode::OK => Ok(response),
        status => {
            let body = timeout(ANSWER, response.into_body().collect()).await.ok().and_then(Result::ok);
            let problem =
                Problem::read(status.as_u16(), &body.map(|body| body.to_bytes()).unwrap_or_default());
            match problem.is_not_active() {
                true => Err(Refused::Elsewhere(Failure::Problem(problem))),
                false => Err(Refused::Here(Failure::Problem(problem))),
            }
        }
    }
}

/// A server that wants TLS, asked without it, says so in a language that is not HTTP.
fn not_http(server: &Server) -> Failure {
    let found = match server.is_secure() {
        true => "its answer is not HTTP",
        false => "its answer is not HTTP; a server with a certificate is https://",
    };
    Failure::Foreign { server: server.to_string(), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use leasehold_types::LeaseId;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::commands::election::resign;
    use crate::output::{Format, Out};

    /// A client of somebody else's server, which answers `{}` to whatever it is asked first.
    async fn client_of_a_foreign_server() -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            socket.write_all(answer).await.unwrap();
        });
        Client::new(Servers::only(Server::local(port)))
    }

    #[tokio::test]
    async fn a_server_that_is_none_of_ours_is_found_out() {
        let watched = client_of_a_foreign_server().await.events(&Call::get("/v1/events")).await;
        assert!(matches!(watched, Err(Failure::Garbled { .. })), "a stream that would never begin");
        let (client, lease) = (client_of_a_foreign_server().await, LeaseId::from_bytes([0; 16]));
        let resigned = resign(&client, &mut Out::new(Format::Table), "scheduler", lease, None).await;
        assert!(matches!(resigned, Err(Failure::Garbled { .. })), "{resigned:?}");
        let stranger = client_of_a_foreign_server().await.stranger().await;
        assert!(matches!(stranger, Some(Failure::Foreign { .. })), "{stranger:?}");
        let nobody = Client::new(Servers::only(Server::local(1))).stranger().await;
        assert!(nobody.is_none(), "{nobody:?}");
    }

    #[test]
    fn names_are_encoded_whole() {
        assert_eq!(encoded("billing/2026:a b?ü"), "billing%2F2026%3Aa%20b%3F%C3%BC");
    }

    #[test]
    fn only_given_parameters_are_asked() {
        let query = with_query("/v1/locks", &[("prefix", Some("a/".into())), ("ownerId", None)]);
        assert_eq!(query, "/v1/locks?prefix=a%2F");
        assert_eq!(with_query("/v1/locks", &[("ownerId", None)]), "/v1/locks");
    }
}
