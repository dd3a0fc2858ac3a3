//! A server in this process, and clients of it.

use std::sync::Arc;

use leasehold_journal::MemoryJournal;
use leasehold_node::RealClock;
use leasehold_proto::v1::locks_client::LocksClient;
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, RawJournal, Server};
use leasehold_types::Durability;
use tonic::transport::{Channel, Endpoint};

/// A server over a journal in memory.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    _data: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(RawConfig::default()).await
    }

    pub(crate) async fn with(raw: RawConfig) -> Self {
        Self::over(MemoryJournal::with_durability(Durability::Durable), raw).await
    }

    /// A server over this journal, which is its own.
    pub(crate) async fn over(journal: MemoryJournal, raw: RawConfig) -> Self {
        let data = tempfile::tempdir().unwrap();
        let raw = RawConfig { listen: Some("127.0.0.1:0".into()), data: Some(data.path().into()), ..raw };
        let components =
            Components { journal: Arc::new(journal), clock: Arc::new(RealClock), log: LogSink::none() };
        let server = Server::start(raw.resolve().unwrap(), components).await.unwrap();
        Self { server, _data: data }
    }

    /// A server of a cluster on this journal.
    pub(crate) async fn on(journal: &str, more: RawConfig) -> Self {
        let data = tempfile::tempdir().unwrap();
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".into()),
            data: Some(data.path().into()),
            journal: Some(RawJournal::from_url(journal).unwrap()),
            ..more
        };
        let config = raw.resolve().unwrap();
        let components = Components::new(&config, LogSink::none());
        Self { server: Server::start(config, components).await.unwrap(), _data: data }
    }

    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(self.server.url()).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn client(&self) -> LocksClient<Channel> {
        LocksClient::new(self.channel().await)
    }
}
