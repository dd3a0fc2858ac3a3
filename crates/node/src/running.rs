//! Starting and stopping a node.

use std::sync::Arc;

use leasehold_journal::{BatchId, Journal, OpenError, ReadError};
use tokio::sync::{oneshot, watch};

use crate::driver::serve;
use crate::open::{Ready, open};
use crate::shared::{Message, Shared};
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
    /// The loop ended by a broken promise; the process should stop too.
    #[error("the loop died")]
    Died,
}

impl StopReason {
    /// What is true for a call of which nothing reached the journal.
    pub(crate) fn nothing_happened(&self) -> SubmitError {
        match self {
            Self::Shutdown => SubmitError::ShuttingDown,
            Self::Fenced => SubmitError::NotActive,
            other => SubmitError::StoreUnavailable(other.to_string()),
        }
    }
}

/// A node that serves. Dropped, it shuts down as well, but nobody waits for it.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    stopped: watch::Receiver<Option<StopReason>>,
}

impl Running {
    /// The way to the loop.
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Stops taking, finishes what was taken, resigns (J16), closes streams. Returns how the loop ended:
    /// [`StopReason::Shutdown`], unless something else came first. The journal is free afterwards.
    pub async fn shutdown(mut self) -> StopReason {
        self.order_shutdown();
        self.stopped().await
    }

    /// Waits until the loop has stopped by itself. Cancel-safe; may be asked again.
    pub async fn stopped(&mut self) -> StopReason {
        match self.stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(StopReason::Died),
            Err(_) => StopReason::Died,
        }
    }

    fn order_shutdown(&self) {
        // A loop that has stopped already takes no orders.
        let _ = self.shared.queue.send(Message::Shutdown);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.order_shutdown();
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
    let (report_ready, ready) = oneshot::channel();
    let (report_stop, stopped) = watch::channel(None);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let life = move || {
        let reason = runtime.block_on(life(config, journal, clock, observer, report_ready));
        // Ends the tasks that a journal left behind, and with them its hold on the engine, before anybody is told.
        drop(runtime);
        report_stop.send_replace(reason);
    };
    let builder = std::thread::Builder::new().name("leasehold-loop".to_owned());
    builder.spawn(life).map_err(StartError::Thread)?;
    let shared = ready.await.map_err(|_| StartError::Died)??;
    Ok(Running { shared, stopped })
}

/// One life of a node: open, replay, serve, stop. `None` if it did not come to serving.
async fn life(
    config: NodeConfig,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    report_ready: oneshot::Sender<Result<Arc<Shared>, StartError>>,
) -> Option<StopReason> {
    let Ready { mut desk, mut writer, mut keepers } = match open(&config, journal, clock, observer).await {
        Ok(ready) => ready,
        Err(error) => {
            // Whoever started us may be gone; then nobody wants to know.
            let _ = report_ready.send(Err(error));
            return None;
        }
    };
    let _ = report_ready.send(Ok(Arc::clone(&desk.shared)));
    let reason = serve(&mut desk, &mut *writer, &mut keepers).await;
    let (tail, token) = (desk.state.tail(), desk.state.durable_counts().last_token);
    desk.stop(&reason);
    match reason {
        StopReason::Shutdown => keepers.finish(tail, token),
        _ => keepers.abandon(),
    }
    Some(reason)
}
