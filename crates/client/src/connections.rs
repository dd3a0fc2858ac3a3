//! Connections, shared: a process with many sessions does not need as many sockets.

use std::sync::Arc;

use leasehold_proto::v1::locks_client::LocksClient;
use tokio::sync::Mutex;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::security::{Authorize, Security};

/// Sessions on one connection: far below what a server accepts, and enough that ten thousand sessions need a hundred
/// sockets.
const SESSIONS: u32 = 100;
/// Frames and answers of a server are at most this large: many times what it sends.
const MESSAGE_BYTES: usize = 16 << 20;

/// The service behind one connection.
pub(crate) type Locks = LocksClient<InterceptedService<Channel, Authorize>>;

/// The ways to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    endpoint: Endpoint,
    security: Arc<Security>,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    way: Option<(Channel, Authorize)>,
    sessions: u32,
    number: u64,
}

/// A connection, with its number: who finds it broken says so by that.
pub(crate) struct Connection {
    pub(crate) locks: Locks,
    pub(crate) number: u64,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint, security: Arc<Security>) -> Self {
        Self { endpoint, security, present: Mutex::default() }
    }

    /// For messages.
    pub(crate) fn uri(&self) -> String {
        self.endpoint.uri().to_string()
    }

    /// For one more session: the present connection, or a new one when it is full or broken. The text says what is
    /// wrong.
    pub(crate) async fn connect(&self) -> Result<Connection, String> {
        self.take(1).await
    }

    /// For a call that ends with its answer.
    pub(crate) async fn locks(&self) -> Result<Locks, String> {
        self.take(0).await.map(|connection| connection.locks)
    }

    async fn take(&self, sessions: u32) -> Result<Connection, String> {
        let mut present = self.present.lock().await;
        if let Some((channel, authorize)) = &present.way
            && present.sessions + sessions <= SESSIONS
        {
            let connection = Connection { locks: locks(channel, authorize), number: present.number };
            present.sessions += sessions;
            return Ok(connection);
        }
        let (channel, authorize) = self.dial().await?;
        let number = present.number + 1;
        let connection = Connection { locks: locks(&channel, &authorize), number };
        *present = Present { way: Some((channel, authorize)), sessions, number };
        Ok(connection)
    }

    async fn dial(&self) -> Result<(Channel, Authorize), String> {
        let authorize = self.security.authorize()?;
        let mut endpoint = self.endpoint.clone();
        if endpoint.uri().scheme_str() == Some("https") {
            let tls = self.security.tls().map_err(|error| error.to_string())?;
            endpoint = endpoint.tls_config(tls).map_err(|error| root_cause(&error))?;
        }
        let channel = endpoint.connect().await.map_err(|error| root_cause(&error))?;
        Ok((channel, authorize))
    }

    /// This connection is not to be used any more.
    pub(crate) async fn avoid(&self, number: u64) {
        let mut present = self.present.lock().await;
        if present.number == number {
            present.way = None;
        }
    }
}

fn locks(channel: &Channel, authorize: &Authorize) -> Locks {
    LocksClient::with_interceptor(channel.clone(), authorize.clone()).max_decoding_message_size(MESSAGE_BYTES)
}

/// The innermost message: `Connection refused` rather than `transport error`.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
