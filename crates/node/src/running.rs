//! Starting and stopping a node.

use std::sync::Arc;

use leasehold_journal::{BatchId, Journal, OpenError, ReadError};
use tokio::sync::{oneshot, watch};

use crate::lives::{Report, lives};
use crate::node::Node;
use crate::seat::Seat;
use crate::{Clock, Handle, NodeConfig, Observer, SubmitError};

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
    /// A recovery cannot be made; nothing was changed.
    #[error("{0}")]
    Refused(&'static str),
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The loop ended before it served; a defect.
    #[error("the loop died while it started")]
    Died,
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
    /// The journal refused a batch although our epoch was current: a broken engine. The slot held this batch, if any.
    #[error("the journal broke its contract: it refused the batch after its tail, found {0:?}")]
    Conflict(Option<BatchId>),
    /// The journal cannot be served, and waiting does not help: it regressed, is damaged, or was written by a newer
    /// version. The message says what to do.
    #[error("the journal cannot be served: {0}")]
    Halted(String),
    /// The loop ended by a broken promise; the process should stop too.
    #[error("the loop died")]
    Died,
}

impl StartError {
    /// Whether it may be over by the next time.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Open(OpenError::Unavailable(_) | OpenError::LostDuel(_) | OpenError::Refused(_)) => true,
            Self::Read(ReadError::Unavailable(_) | ReadError::NotFounded | ReadError::Replaced) => true,
            Self::Open(_) | Self::Read(ReadError::Corrupt { .. }) => false,
            Self::Witness(_) | Self::Refused(_) | Self::Thread(_) | Self::Died => false,
        }
    }
}

impl StopReason {
    /// Whether another node serves now, or this one may again after opening anew (N2).
    pub(crate) fn is_step_down(&self) -> bool {
        matches!(self, Self::Fenced | Self::Unresolved(_))
    }

    /// What is true for a call of which nothing reached the journal.
    pub(crate) fn nothing_happened(&self) -> SubmitError {
        match self {
            Self::Shutdown => SubmitError::ShuttingDown,
            Self::Fenced => SubmitError::NotActive,
            other => SubmitError::StoreUnavailable(other.to_string()),
        }
    }
}

/// A node that runs: serves, or stands by. Dropped, it shuts down as well, but nobody waits for it.
#[derive(Debug)]
pub struct Running {
    seat: Arc<Seat>,
    stopped: watch::Receiver<Option<StopReason>>,
}

impl Running {
    /// The way to the loop.
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.seat))
    }

    /// Stops taking, finishes what was taken, resigns (J16), closes streams. Returns how the loop ended:
    /// [`StopReason::Shutdown`], unless something else came first. The journal is free afterwards.
    pub async fn shutdown(mut self) -> StopReason {
        self.seat.close();
        self.stopped().await
    }

    /// Waits until the loop has stopped by itself. Cancel-safe; may be asked again.
    pub async fn stopped(&mut self) -> StopReason {
        match self.stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(StopReason::Died),
            Err(_) => StopReason::Died,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.seat.close();
    }
}

/// Opens the journal, replays it, checks the witness and starts the loop on its own thread. Returns when it serves, or,
/// on a journal that is shared with other nodes, when it stands by.
///
/// # Errors
/// See [`StartError`]; the message says what to do.
pub async fn start(
    config: NodeConfig,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<Running, StartError> {
    let (report_ready, ready) = oneshot::channel();
    let (report_stop, stopped) = watch::channel(None);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let node = Node::new(config, journal, clock, observer, runtime.handle());
    let seat = Arc::clone(&node.seat);
    let life = move || {
        node.seat.places().begin_here();
        let end = runtime.block_on(lives(&node, Report(Some(report_ready))));
        // Ends the tasks that a journal left behind, and with them its hold on the engine, before anybody is told.
        drop(runtime);
        report_stop.send_replace(end.tell());
    };
    let builder = std::thread::Builder::new().name("leasehold-loop".to_owned());
    builder.spawn(life).map_err(StartError::Thread)?;
    ready.await.map_err(|_| StartError::Died)??;
    Ok(Running { seat, stopped })
}
