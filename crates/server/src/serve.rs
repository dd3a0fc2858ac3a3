//! `leasehold serve`: one call that runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use crate::config::{Config, ConfigError};
use crate::error::ServeError;
use crate::logs;
use crate::server::{Components, Server};

/// Serves until SIGINT or SIGTERM, on a runtime of its own, logging to standard error. `settings` are asked for at the start
/// and on SIGHUP, which also reads certificates and signing keys again; of the settings, policies and what tenants may have
/// count anew.
///
/// # Errors
/// See [`ServeError`]; its hint says what to do, and [`ServeError::is_refusal`] chooses the exit code.
pub fn serve(settings: impl Fn() -> Result<Config, ConfigError>) -> Result<(), ServeError> {
    let config = settings()?;
    let log = logs::init(&config.log)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::System)?;
    let components = Components::new(&config, log.clone());
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = tokio::select! {
            started = Server::start(config, components) => started?,
            // Nothing was served yet; a journal that does not answer must not keep the process.
            name = signals.end() => {
                info!(event = "shutting_down", signal = name, "told to end before the start was complete");
                return Ok(());
            }
        };
        run(server, signals, settings).await
    });
    // A task that is stuck in the disk must not hold the process up.
    runtime.shutdown_background();
    log.flush();
    outcome
}

/// What the process is told from outside.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Listens from now on. Before anything is served: whoever sees the server answer may tell it to end at once, and a
    /// signal that comes before its listener is lost.
    fn listen() -> Result<Self, ServeError> {
        let listen = |kind| signal(kind).map_err(ServeError::System);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits until the process is to end: by which signal. Cancel-safe.
    async fn end(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

async fn run(
    mut server: Server,
    mut signals: Signals,
    settings: impl Fn() -> Result<Config, ConfigError>,
) -> Result<(), ServeError> {
    let name = loop {
        tokio::select! {
            _ = signals.interrupt.recv() => break "SIGINT",
            _ = signals.terminate.recv() => break "SIGTERM",
            _ = signals.hang_up.recv() => read_again(&server, settings()),
            reason = server.stopped() => {
                error!(event = "node_stopped", %reason, "the node stopped by itself");
                return Err(reason);
            }
        }
    };
    info!(event = "shutting_down", signal = name, "shutting down");
    server.shutdown().await
}

fn read_again(server: &Server, settings: Result<Config, ConfigError>) {
    server.reload();
    match settings {
        // The table is told in its own time: a disk that is stuck must not keep signals from being heard.
        Ok(config) => drop(tokio::spawn(server.declare(&config))),
        Err(why) => warn!(event = "settings_not_reloaded", %why, "policies and quotas stay as they were"),
    }
}
