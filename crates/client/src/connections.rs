//! Connections, shared: a process with many sessions does not need as many sockets.

use std::sync::Arc;

use leasehold_proto::v1::locks_client::LocksClient;
use tokio::sync::Mutex;
use tonic::client::Grpc;
use tonic::codec::Codec;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::Stream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::security::{Authorize, Security};

/// Sessions on one connection: far below what a server accepts, and enough that ten thousand sessions need a hundred
/// sockets.
const SESSIONS: u32 = 100;
/// Frames and answers of a server are at most this large: many times what it sends.
const MESSAGE_BYTES: usize = 16 << 20;

/// What a connection is, to calls: each is authorized.
type Way = InterceptedService<Channel, Authorize>;

/// The service behind one connection.
pub(crate) type Locks = LocksClient<Way>;

/// One session stream of a connection: the call of the generated stub, with a codec of the caller's choice.
pub(crate) struct SessionStream(Grpc<Way>);

impl SessionStream {
    const PATH: &'static str = "/leasehold.v1.Locks/Session";

    /// Begins the stream.
    pub(crate) async fn open<C: Codec<Encode: Sync, Decode: Sync>>(
        &mut self,
        outbound: impl Stream<Item = C::Encode> + Send + 'static,
        codec: C,
    ) -> Result<Streaming<C::Decode>, Status> {
        self.0.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let path = PathAndQuery::from_static(Self::PATH);
        self.0.streaming(Request::new(outbound), path, codec).await.map(tonic::Response::into_inner)
    }
}

/// The ways to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    endpoint: Endpoint,
    security: Arc<Security>,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    way: Option<Way>,
    sessions: u32,
    number: u64,
}

/// A connection, with its number: who finds it broken says so by that.
pub(crate) struct Connection {
    pub(crate) stream: SessionStream,
    pub(crate) number: u64,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint, security: Arc<Security>) -> Self {
        Self { endpoint, security, present: Mutex::default() }
    }

    /// For messages.
    pub(crate) fn uri(&self) -> String {
        self.endpoint.uri().to_string().trim_end_matches('/').to_owned()
    }

    /// For one more session: the present connection, or a new one when it is full or broken. The text says what is
    /// wrong.
    pub(crate) async fn connect(&self) -> Result<Connection, String> {
        let (way, number) = self.take(1).await?;
        let stream = SessionStream(Grpc::new(way).max_decoding_message_size(MESSAGE_BYTES));
        Ok(Connection { stream, number })
    }

    /// For a call that ends with its answer.
    pub(crate) async fn locks(&self) -> Result<Locks, String> {
        let (way, _) = self.take(0).await?;
        Ok(LocksClient::new(way).max_decoding_message_size(MESSAGE_BYTES))
    }

    /// The present connection, with room for so many sessions, and its number.
    async fn take(&self, sessions: u32) -> Result<(Way, u64), String> {
        let mut present = self.present.lock().await;
        if let Some(way) = &present.way
            && present.sessions + sessions <= SESSIONS
        {
            let taken = (way.clone(), present.number);
            present.sessions += sessions;
            return Ok(taken);
        }
        let way = self.dial().await?;
        let number = present.number + 1;
        *present = Present { way: Some(way.clone()), sessions, number };
        Ok((way, number))
    }

    async fn dial(&self) -> Result<Way, String> {
        let authorize = self.security.authorize()?;
        let mut endpoint = self.endpoint.clone();
        if endpoint.uri().scheme_str() == Some("https") {
            let tls = self.security.tls().map_err(|error| error.to_string())?;
            endpoint = endpoint.tls_config(tls).map_err(|error| root_cause(&error))?;
        }
        let channel = endpoint.connect().await.map_err(|error| root_cause(&error))?;
        Ok(InterceptedService::new(channel, authorize))
    }

    /// This connection is not to be used any more.
    pub(crate) async fn avoid(&self, number: u64) {
        let mut present = self.present.lock().await;
        if present.number == number {
            present.way = None;
        }
    }
}

/// The innermost message: `Connection refused` rather than `transport error`.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
