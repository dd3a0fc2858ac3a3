//! Starting and stopping a node.

use std::sync::Arc;

use leasehold_journal::{BatchId, Journal, OpenError, ReadError};

use crate::{Clock, Handle, NodeConfig, Observer};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal could not be opened, or is not what the witness has seen.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal could not be read back.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The witness could not be read or written.
    #[error("the witness in the data directory: {0}")]
    Witness(String),
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Why a node stopped serving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// It was asked to, and resigned in order.
    #[error("shut down")]
    Shutdown,
    /// Another node took the journal over.
    #[error("another node took the journal over")]
    Fenced,
    /// The outcome of a commit stayed unknown for too long: opening again resolves it.
    #[error("the outcome of a commit is unknown: {0}")]
    Unresolved(String),
    /// The journal can never be trusted again in this process, such as after a failed fsync.
    #[error("the journal failed: {0}")]
    JournalFailed(String),
    /// The slot held another node's batch although our epoch was current.
    #[error("the journal broke its contract: slot taken by batch {0:?}")]
    Conflict(BatchId),
    /// The loop ended by a broken promise; the process should stop too.
    #[error("the loop died")]
    Died,
}

/// A node that serves.
#[derive(Debug)]
pub struct Running {}

impl Running {
    /// The way to the loop.
    pub fn handle(&self) -> Handle {
        todo!()
    }

    /// Stops taking, finishes what was taken, resigns (J16), closes streams. Returns how the loop ended:
    /// [`StopReason::Shutdown`], unless something else came first.
    pub async fn shutdown(self) -> StopReason {
        todo!()
    }

    /// Waits until the loop has stopped by itself. Cancel-safe; may be asked again.
    pub async fn stopped(&mut self) -> StopReason {
        todo!()
    }
}

/// Opens the journal, replays it, checks the witness and starts the loop on its own thread. Returns when it serves.
///
/// # Errors
/// See [`StartError`]; the message says what to do.
pub async fn start(
    config: NodeConfig,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<Running, StartError> {
    let _ = (config, journal, clock, observer);
    todo!()
}
