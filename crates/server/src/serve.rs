//! `leasehold serve`: one call that runs until it is told to stop.

use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};

use crate::config::Config;
use crate::error::ServeError;
use crate::logs;
use crate::server::{Components, Server};

/// Serves until SIGINT or SIGTERM, on a runtime of its own, logging to standard error; SIGHUP reads certificates again. `ready` is called once requests
/// are answered.
///
/// # Errors
/// See [`ServeError`]; its hint says what to do, and [`ServeError::is_refusal`] chooses the exit code.
pub fn serve(config: Config, ready: impl FnOnce(&Server)) -> Result<(), ServeError> {
    let log = logs::init(&config.log)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::System)?;
    let components = Components::new(&config, log.clone());
    let outcome = runtime.block_on(async {
        let server = Server::start(config, components).await?;
        ready(&server);
        run(server).await
    });
    // A task that is stuck in the disk must not hold the process up.
    runtime.shutdown_background();
    log.flush();
    outcome
}

async fn run(mut server: Server) -> Result<(), ServeError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::System)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::System)?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(ServeError::System)?;
    let name = loop {
        tokio::select! {
            _ = interrupt.recv() => break "SIGINT",
            _ = terminate.recv() => break "SIGTERM",
            _ = hang_up.recv() => server.reload_certificates(),
            reason = server.stopped() => {
                error!(event = "node_stopped", %reason, "the node stopped by itself");
                return Err(reason);
            }
        }
    };
    info!(event = "shutting_down", signal = name, "shutting down");
    server.shutdown().await
}
