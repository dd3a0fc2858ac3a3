//! A lock service of the drill's own, in its process: gone with it, whatever happens.

use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, Server};
use tempfile::TempDir;

use crate::failure::Failure;

/// A server on a free port of this machine and a temporary directory.
pub(super) struct PrivateServer {
    server: Server,
    // After the server, so that it is removed when nobody writes there.
    _data: TempDir,
}

impl PrivateServer {
    pub(super) async fn start() -> Result<Self, Failure> {
        let io = |error| Failure::Io { what: "cannot make a temporary directory".into(), error };
        let data = tempfile::Builder::new().prefix("leasehold-drill-").tempdir().map_err(io)?;
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".into()),
            data: Some(data.path().join("data")),
            ..RawConfig::default()
        };
        let refused =
            |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot start a server: {error}"));
        let config = raw.resolve().map_err(|error| refused(&error))?;
        let components = Components::new(&config, LogSink::none());
        let server = Server::start(config, components).await.map_err(|error| refused(&error))?;
        Ok(Self { server, _data: data })
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// Ends it in order.
    pub(super) async fn stop(self) {
        // What it kept is removed anyway.
        drop(self.server.shutdown().await);
    }
}
