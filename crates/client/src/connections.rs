//! Connections, shared: a process with many sessions does not need as many sockets.

use tokio::sync::Mutex;
use tonic::transport::{Channel, Endpoint, Error};

/// Sessions on one connection: far below what a server accepts, and enough that ten thousand sessions need a hundred
/// sockets.
const SESSIONS: u32 = 100;

/// The ways to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    endpoint: Endpoint,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    channel: Option<Channel>,
    sessions: u32,
    number: u64,
}

/// A connection, with its number: who finds it broken says so by that.
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) number: u64,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, present: Mutex::default() }
    }

    /// For messages.
    pub(crate) fn uri(&self) -> String {
        self.endpoint.uri().to_string()
    }

    /// The present connection, or a new one when it is full or broken.
    pub(crate) async fn connect(&self) -> Result<Connection, Error> {
        let mut present = self.present.lock().await;
        if let Some(channel) = &present.channel
            && present.sessions < SESSIONS
        {
            let connection = Connection { channel: channel.clone(), number: present.number };
            present.sessions += 1;
            return Ok(connection);
        }
        let channel = self.endpoint.connect().await?;
        let number = present.number + 1;
        *present = Present { channel: Some(channel.clone()), sessions: 1, number };
        Ok(Connection { channel, number })
    }

    /// This connection is not to be used any more.
    pub(crate) async fn avoid(&self, number: u64) {
        let mut present = self.present.lock().await;
        if present.number == number {
            present.channel = None;
        }
    }
}
