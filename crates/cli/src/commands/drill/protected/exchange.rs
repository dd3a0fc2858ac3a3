//! One request over plain HTTP, and its answer.

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::unusable;
use crate::failure::Failure;

/// Sends it on a connection of its own. `what` is who is asked, for people.
pub(super) async fn exchange(
    what: &str,
    mut request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    let uri = request.uri().clone();
    let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(80));
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(unusable(what))?;
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    request.headers_mut().insert(header::HOST, authority.parse().map_err(unusable(what))?);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().map_err(unusable(what))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(unusable(what))?;
    // Ends with the answer; its error is seen there.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(unusable(what))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(unusable(what))?;
    Ok((status, body.to_bytes()))
}

/// What a service says about itself when it says no: the detail of a problem, or the beginning of whatever it sent.
pub(super) fn words(status: StatusCode, body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = problem.get("detail").and_then(serde_json::Value::as_str).map(str::to_owned);
    let start = || String::from_utf8_lossy(body).chars().take(200).collect();
    format!("{}: {}", status.as_u16(), detail.unwrap_or_else(start))
}
