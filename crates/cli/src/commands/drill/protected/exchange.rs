//! One request over HTTP, on a connection of its own, and its answer.

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;

use super::unusable;
use crate::client::{Server, connect};
use crate::failure::Failure;

/// Sends it. `what` is who is asked, for people.
pub(super) async fn send(what: &str, mut request: Request<Bytes>) -> Result<Response<Bytes>, Failure> {
    let uri = request.uri().clone();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let server = Server::parse(&format!("{}://{authority}", uri.scheme_str().unwrap_or("http")))?;
    let stream = connect(&server).await.map_err(|failure| match failure {
        Failure::Unreachable { error, .. } | Failure::Insecure { error, .. } => {
            Failure::Fence(format!("{what}: {error}"))
        }
        other => other,
    })?;
    if !request.headers().contains_key(header::HOST) {
        request.headers_mut().insert(header::HOST, authority.parse().map_err(unusable(what))?);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().map_err(unusable(what))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(unusable(what))?;
    // Ends with the answer; its error is seen there.
    tokio::spawn(connection);
    let response = sender.send_request(request.map(Full::new)).await.map_err(unusable(what))?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(unusable(what))?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

/// What matters of an answer.
pub(super) fn parted(response: Response<Bytes>) -> (StatusCode, Bytes) {
    (response.status(), response.into_body())
}

/// What a service says about itself when it says no: the detail of a problem, or the beginning of whatever it sent.
pub(super) fn words(status: StatusCode, body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = problem.get("detail").and_then(serde_json::Value::as_str).map(str::to_owned);
    let start = || String::from_utf8_lossy(body).chars().take(200).collect();
    format!("{}: {}", status.as_u16(), detail.unwrap_or_else(start))
}
