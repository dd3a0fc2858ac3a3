//! What `fence proxy` and `fence storage` share: an address, a log, an orderly end.

use std::net::SocketAddr;

use leasehold_server::logs::{self, LogSink};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Reads an address. Nobody is authenticated here, so one beyond this machine is asked for by name.
///
/// # Errors
/// [`Failure::Usage`], naming the argument.
pub(super) fn address(flag: &str, text: &str, insecure: bool) -> Result<SocketAddr, Failure> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| Failure::Usage(format!("{flag}: `{text}` is not an address such as 127.0.0.1:7421")))?;
    match address.ip().is_loopback() || insecure {
        true => Ok(address),
        false => Err(Failure::Usage(format!(
            "{flag}: {address} can be reached from other machines, and callers are not authenticated; add --insecure if that is meant"
        ))),
    }
}

/// Listens there.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let refused = |error| Failure::RefusedToStart(format!("cannot listen on {address}: {error}"));
    TcpListener::bind(address).await.map_err(refused)
}

/// Logs to standard error, as `LEASEHOLD_LOG` chooses.
pub(super) fn log() -> Result<LogSink, Failure> {
    let directives = std::env::var("LEASEHOLD_LOG").unwrap_or_else(|_| "info".into());
    logs::init(&directives).map_err(|error| Failure::Usage(error.to_string()))
}

/// SIGINT and SIGTERM.
pub(super) struct Ending(Signal, Signal);

impl Ending {
    pub(super) fn new() -> Result<Self, Failure> {
        let io = |error| Failure::Io { what: "cannot listen for signals".into(), error };
        let interrupt = signal(SignalKind::interrupt()).map_err(io)?;
        Ok(Self(interrupt, signal(SignalKind::terminate()).map_err(io)?))
    }

    /// Completes at the first of them.
    pub(super) async fn asked(mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
        tracing::info!(event = "shutting_down", "shutting down");
    }
}
