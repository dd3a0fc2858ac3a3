//! The lives of a node, one after the other: as a standby, as the active one, as a standby again.

use std::sync::Arc;

use leasehold_types::Nonce;
use tokio::sync::oneshot;

use crate::config::SharedJournal;
use crate::driver::serve;
use crate::keepers::{DataLock, load_witness};
use crate::node::Node;
use crate::open::{Ready, make_ready, open};
use crate::standby::{Claimed, Standby, Turn};
use crate::{Active, StartError, StopReason};

/// Tells whoever started the node, once, whether it runs.
pub(crate) struct Report(pub(crate) Option<oneshot::Sender<Result<(), StartError>>>);

impl Report {
    fn running(&mut self) {
        self.tell(Ok(()));
    }

    /// Why there is no further life: the start failed, or what was running halts.
    fn failed(self, error: StartError) -> End {
        match self.is_open() {
            true => End::NotStarted(self, error),
            false => End::Stopped(StopReason::Halted(error.to_string())),
        }
    }

    fn is_open(&self) -> bool {
        self.0.is_some()
    }

    fn tell(&mut self, outcome: Result<(), StartError>) {
        if let Some(report) = self.0.take() {
            // Whoever started us may be gone; then nobody wants to know.
            let _ = report.send(outcome);
        }
    }
}

/// How the lives of a node ended.
pub(crate) enum End {
    /// It ran, and had a reason to stop.
    Stopped(StopReason),
    /// It did not come to running. To be told once nothing of it is left: whoever started it may start it again at once.
    NotStarted(Report, StartError),
}

impl End {
    /// Tells whoever started the node, if it never ran; else why it stopped.
    pub(crate) fn tell(self) -> Option<StopReason> {
        match self {
            Self::Stopped(reason) => Some(reason),
            Self::NotStarted(mut report, error) => {
                report.tell(Err(error));
                None
            }
        }
    }
}

/// Lives until there is a reason to stop.
pub(crate) async fn lives(node: &Node, mut report: Report) -> End {
    let (_lock, mut own) = match node.config.shared {
        None => (None, None),
        Some(_) => match DataLock::take(&node.config.data_dir) {
            Ok(lock) => (Some(lock), last_claim(node)),
            Err(error) => return report.failed(error.into()),
        },
    };
    loop {
        let ready = match &node.config.shared {
            None => open(node).await,
            Some(settings) => match stand_by(node, settings, own, &mut report).await {
                Ok(Turned::Ready(ready, nonce)) => {
                    own = Some(nonce);
                    Ok(*ready)
                }
                Ok(Turned::Again(nonce)) => {
                    own = Some(nonce);
                    continue;
                }
                Ok(Turned::Shutdown) => return End::Stopped(StopReason::Shutdown),
                Err(error) => Err(error),
            },
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(error) => return report.failed(error),
        };
        let reason = live(node, ready, &mut report).await;
        if node.config.shared.is_none() || !reason.is_step_down() {
            return End::Stopped(reason);
        }
        node.observer.stepped_down(&reason);
    }
}

/// The nonce of the last claim that was made from this data directory. If the journal still has it, then its active node
/// was this one before it died: the lock on the directory proves that it did.
fn last_claim(node: &Node) -> Option<Nonce> {
    // A witness that cannot be read is told of when it is needed.
    load_witness(&node.config.data_dir).ok().flatten().and_then(|witness| witness.claimed)
}

enum Turned {
    Ready(Box<Ready>, Nonce),
    /// The journal was claimed and then did not answer: stand by and try again.
    Again(Nonce),
    Shutdown,
}

async fn stand_by(
    node: &Node,
    settings: &SharedJournal,
    own: Option<Nonce>,
    report: &mut Report,
) -> Result<Turned, StartError> {
    let mut standby = Standby::new(node, settings, own)?;
    let first = if report.is_open() { standby.begin().await? } else { None };
    let turn = match first {
        Some(turn) => turn,
        None => {
            report.running();
            standby.wait().await?
        }
    };
    match turn {
        Turn::Shutdown => Ok(Turned::Shutdown),
        Turn::Opened(claimed) => take_over(node, *claimed, report).await,
    }
}

async fn take_over(node: &Node, claimed: Claimed, report: &Report) -> Result<Turned, StartError> {
    let Claimed { opened, nonce, warm } = claimed;
    match make_ready(node, opened, nonce, warm).await {
        Ok(ready) => Ok(Turned::Ready(Box::new(ready), nonce)),
        Err(error) if error.passes() && !report.is_open() => {
            node.observer.trouble("the journal was claimed and not taken over", &error.to_string());
            Ok(Turned::Again(nonce))
        }
        Err(error) => Err(error),
    }
}

/// One life as the active node: serve, stop, answer everybody.
async fn live(node: &Node, ready: Ready, report: &mut Report) -> StopReason {
    let Ready { mut desk, mut writer, mut keepers } = ready;
    node.seat.enter(Arc::clone(&desk.shared));
    if let Some(SharedJournal { url, .. }) = &node.config.shared {
        let (epoch, name, url) = (desk.state.epoch(), Arc::clone(&node.config.name), Arc::clone(url));
        node.seat.set_active(Some(Active { epoch, node: name, url, here: true }));
    }
    report.running();
    let reason =
        serve(&mut desk, &mut *writer, &mut keepers, node.config.shared.is_some(), node.seat.places()).await;
    let (tail, token) = (desk.state.tail(), desk.state.durable_counts().last_token);
    desk.stop(&reason);
    node.seat.set_active(None);
    // What follows blocks this thread, and they have still to pass on what they were just told.
    node.seat.places().farewell(&*node.clock).await;
    match reason {
        StopReason::Shutdown => keepers.finish(tail, token),
        _ if reason.is_step_down() => keepers.step_down(),
        _ => keepers.abandon(),
    }
    reason
}
