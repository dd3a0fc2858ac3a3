//! Calls of gRPC over one connection of HTTP/2, one message each way. A whole call is handed to the connection at once, and leaves in
//! one write: etcd is woken for it once, and so is whoever else shares its processors.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, TE, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use leasehold_journal::remote::in_words;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::Status;

/// Largest answer: as many slots as one read gives, each at the limit, and some room.
const ANSWER_BYTES: usize = 80 << 20;
/// What may be on its way to us unread, of one answer and of all.
const WINDOW_BYTES: u32 = 2 << 20;
const WINDOWS_BYTES: u32 = 5 << 20;
/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The word of HTTP/2 among the protocols of TLS.
pub(crate) const ALPN: &[u8] = b"h2";
/// Begins what is said of somebody who takes connections and then does not speak as etcd does.
pub(crate) const BROKEN: &str = "the connection broke";

/// Why there is no answer.
pub(crate) enum Failure {
    /// The other end has answered so.
    Status(Status),
    /// In words; whether anything was done is unknown.
    Unreached(String),
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        broken(&error)
    }
}

fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::Unreached(format!("{BROKEN}: {}", in_words(error)))
}

fn garbled(what: &str) -> Failure {
    Failure::Unreached(format!("{BROKEN}: {what}"))
}

/// Where a member is, and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Address {
    /// As in `http://host:port`.
    pub(crate) uri: Uri,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A connection, which ends with its last copy.
#[derive(Clone)]
pub(crate) struct Connection {
    uri: Uri,
    requests: SendRequest<Bytes>,
    _task: Arc<Task>,
}

/// What moves the bytes of a connection.
struct Task(JoinHandle<()>);

impl Drop for Task {
    /// At once: one that hangs would otherwise wait to take its leave.
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(crate) async fn open(Address { uri, tls }: &Address) -> Result<Self, Failure> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or_default();
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(|error| Failure::Unreached(in_words(&error)))?;
        stream.set_nodelay(true).map_err(|error| broken(&error))?;
        let Some(tls) = tls else { return Self::over(stream, uri).await };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| broken(&error))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        let stream = stream.map_err(|error| broken(&error))?;
        if stream.get_ref().1.alpn_protocol() != Some(ALPN) {
            return Err(garbled("no HTTP/2 within TLS"));
        }
        Self::over(stream, uri).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        uri: &Uri,
    ) -> Result<Self, Failure> {
        let mut builder = Builder::new();
        builder.enable_push(false).initial_window_size(WINDOW_BYTES);
        builder.initial_connection_window_size(WINDOWS_BYTES);
        let (requests, connection) = builder.handshake(stream).await?;
        // Whoever waits for an answer is told what has happened to it.
        let task = tokio::spawn(async { drop(connection.await) });
        Ok(Self { uri: uri.clone(), requests, _task: Arc::new(Task(task)) })
    }

    /// Asks once.
    pub(crate) async fn call<A: Message, B: Message + Default>(
        &self,
        path: &str,
        credential: Option<&HeaderValue>,
        message: &A,
    ) -> Result<B, Failure> {
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut body) = requests.send_request(self.request(path, credential)?, false)?;
        body.send_data(framed(message), true)?;
        let (head, mut body) = answer.await?.into_parts();
        check(&Response::from_parts(head, ()))?;
        let message = read(&mut body).await?;
        match body.trailers().await?.as_ref().and_then(Status::from_header_map) {
            Some(status) if status.code() == tonic::Code::Ok => {}
            Some(status) => return Err(Failure::Status(status)),
            None => return Err(garbled("an answer without a status")),
        }
        unframed(message)
    }

    fn request(&self, path: &str, credential: Option<&HeaderValue>) -> Result<Request<()>, Failure> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path.try_into().map_err(|error: http::uri::InvalidUri| broken(&error))?);
        let uri = Uri::from_parts(parts).map_err(|error| broken(&error))?;
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut(), *request.version_mut()) =
            (Method::POST, uri, Version::HTTP_2);
        let headers = request.headers_mut();
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(USER_AGENT, HeaderValue::from_static("leasehold"));
        if let Some(credential) = credential {
            headers.insert(AUTHORIZATION, credential.clone());
        }
        Ok(request)
    }
}

/// A failure may be all that is answered.
fn check(head: &Response<()>) -> Result<(), Failure> {
    match Status::from_header_map(head.headers()) {
        Some(status) if status.code() != tonic::Code::Ok => Err(Failure::Status(status)),
        _ if head.status() != StatusCode::OK => Err(garbled(&format!("an answer of {}", head.status()))),
        _ => Ok(()),
    }
}

async fn read(body: &mut RecvStream) -> Result<Bytes, Failure> {
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = body.data().await {
        let piece = match piece {
            // The answer was whole before: etcd does not want to hear more.
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => break,
            piece => piece?,
        };
        body.flow_control().release_capacity(piece.len())?;
        if first.len() + more.len() + piece.len() > ANSWER_BYTES {
            return Err(garbled("an answer that is too long"));
        }
        match first.is_empty() {
            true => first = piece,
            false => more.extend_from_slice(&piece),
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + more.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&more);
    Ok(whole.freeze())
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).expect("a message is far below 4 GiB"));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

fn unframed<B: Message + Default>(bytes: Bytes) -> Result<B, Failure> {
    let is_whole = |prefix: &[u8; PREFIX_BYTES]| {
        let [compressed, length @ ..] = *prefix;
        compressed == 0 && u32::from_be_bytes(length) as usize == bytes.len() - PREFIX_BYTES
    };
    if !bytes.first_chunk().is_some_and(is_whole) {
        return Err(garbled("an answer that is not one message"));
    }
    B::decode(bytes.slice(PREFIX_BYTES..)).map_err(|error| broken(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::CompactionRequest;

    #[test]
    fn a_message_has_its_length_before_it() {
        let message = CompactionRequest { revision: 300 };
        let bytes = framed(&message);
        assert_eq!(bytes[..PREFIX_BYTES], [0, 0, 0, 0, 3]);
        let read = unframed::<CompactionRequest>(bytes).ok().expect("it is whole");
        assert_eq!(read.revision, 300);
    }

    #[test]
    fn what_is_not_one_whole_message_is_refused() {
        let whole = framed(&CompactionRequest { revision: 300 });
        let compressed = [&[1], &whole[1..]].concat();
        let longer = [&whole[..], &[0]].concat();
        for bytes in [Vec::new(), whole[..4].to_vec(), whole[..7].to_vec(), compressed, longer] {
            let read = unframed::<CompactionRequest>(bytes.clone().into());
            assert!(matches!(read, Err(Failure::Unreached(_))), "{bytes:?}");
        }
    }
}
