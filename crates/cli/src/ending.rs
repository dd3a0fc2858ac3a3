//! SIGINT and SIGTERM, for commands that run until they are told to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// From its making on, neither signal ends the process by itself.
pub(crate) struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    /// Listens.
    ///
    /// # Errors
    /// The system does not let it.
    pub(crate) fn new() -> Result<Self, Failure> {
        let failed = |error| Failure::Io { what: "cannot listen for signals".into(), error };
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self {
            interrupt: signal(interrupt).map_err(failed)?,
            terminate: signal(terminate).map_err(failed)?,
        })
    }

    /// Completes at the first of them. Cancel-safe.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
