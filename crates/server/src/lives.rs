//! The lives of a server's node, one after the other.
//!
//! A node that could not resolve a commit steps down for good (N2). With a journal on a remote engine that is mostly the
//! engine's doing, and it comes back: the journal is opened again, with a new epoch, until that succeeds or is refused.
//! Every life has an [`App`] of its own, so that no connection or stream of one life is answered by another; between two
//! lives there is one that answers `store_unavailable`.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use leasehold_journal::Journal;
use leasehold_node::{Clock, Handle, NodeConfig, Observer, Running, StartError, StopReason};
use leasehold_types::TenantName;
use tokio::sync::{Semaphore, watch};
use tracing::{info, warn};

use crate::config::{Config, patience};
use crate::error::ServeError;
use crate::grpc::Losses;
use crate::http::{App, draining};
use crate::metrics::Metrics;

/// The first pause between two attempts to open; each is twice as long as the one before, up to [`PAUSE_MOST`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// An engine that is back is noticed within this.
const PAUSE_MOST: Duration = Duration::from_secs(2);

/// What every life is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) losses: Arc<Losses>,
    pub(crate) watchers: Arc<Semaphore>,
}

impl Parts {
    /// Opens the journal and starts a node on it.
    pub(crate) async fn open(&self) -> Result<Running, StartError> {
        let mut node = NodeConfig::new(self.config.node.as_str(), &self.config.data);
        node.correctness_despite_loss = self.config.accept_lossy;
        let (journal, clock) = (Arc::clone(&self.journal), Arc::clone(&self.clock));
        let running = leasehold_node::start(node, journal, clock, Arc::clone(&self.observer)).await?;
        self.metrics.took_over();
        Ok(running)
    }

    fn app(&self, address: &str, handle: Handle, away: Option<String>) -> (Arc<App>, watch::Sender<bool>) {
        let (drain, draining) = watch::channel(false);
        let status = handle.status();
        let epoch = format!("{}/{}", status.cluster, status.epoch);
        let app = App {
            epoch: HeaderValue::from_str(&epoch).expect("a UUID and a number are a valid header"),
            handle,
            away,
            limits: self.config.limits,
            hosts: self.config.hosts.clone(),
            address: address.to_owned(),
            metrics: Arc::clone(&self.metrics),
            tenant: TenantName::default_tenant(),
            watchers: Arc::clone(&self.watchers),
            drain: draining,
            losses: Arc::clone(&self.losses),
        };
        (Arc::new(app), drain)
    }
}

/// See the module.
pub(crate) struct Lives {
    parts: Parts,
    address: String,
    current: watch::Sender<Arc<App>>,
    /// Ends the connections and streams of the current [`App`].
    drain: watch::Sender<bool>,
}

impl Lives {
    /// The first life; also gives where the present [`App`] is found.
    pub(crate) fn new(parts: Parts, address: String, running: &Running) -> (Self, watch::Receiver<Arc<App>>) {
        let (app, drain) = parts.app(&address, running.handle(), None);
        let (current, present) = watch::channel(app);
        (Self { parts, address, current, drain }, present)
    }

    /// Serves until `stop` turns true, or the node stops and must not begin again: the error says why.
    pub(crate) async fn keep(
        mut self,
        mut running: Running,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), ServeError> {
        loop {
            let reason = tokio::select! {
                reason = running.stopped() => reason,
                () = draining(&mut stop) => {
                    self.drain.send_replace(true);
                    return shut_down(running).await;
                }
            };
            if !self.comes_back(&reason) {
                return Err(ServeError::Stopped(reason));
            }
            running = match self.begin_again(running.handle(), reason, &mut stop).await? {
                Some(next) => next,
                None => return Ok(()),
            };
        }
    }

    /// After a lost commit the engine decides, at the next claim, whether it has happened. Anything else is for people.
    fn comes_back(&self, reason: &StopReason) -> bool {
        matches!(reason, StopReason::Unresolved(_)) && self.parts.journal.kind() != "embedded"
    }

    /// Opens the journal until it works: `None` if the server is to end before.
    async fn begin_again(
        &mut self,
        old: Handle,
        reason: StopReason,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<Running>, ServeError> {
        warn!(event = "node_stepped_down", %reason, "the journal does not commit; opening it again");
        self.change(old, Some(reason.to_string()));
        let mut pause = PAUSE_FIRST;
        loop {
            tokio::select! {
                biased;
                () = draining(stop) => {
                    self.drain.send_replace(true);
                    return Ok(None);
                }
                () = tokio::time::sleep(pause) => {}
            }
            // Not cut short by `stop`: a node that was started must be in somebody's hands.
            match self.parts.open().await.map_err(ServeError::Start) {
                Ok(running) => {
                    info!(event = "node_serves_again", "the journal is open again");
                    self.change(running.handle(), None);
                    return Ok(Some(running));
                }
                Err(error) if error.is_refusal() => return Err(error),
                Err(error) => {
                    warn!(event = "journal_unavailable", %error, "the journal cannot be opened yet")
                }
            }
            pause = (2 * pause).min(PAUSE_MOST);
        }
    }

    /// Ends everything of the present [`App`], and puts the next one into its place.
    fn change(&mut self, handle: Handle, away: Option<String>) {
        let (app, drain) = self.parts.app(&self.address, handle, away);
        self.current.send_replace(app);
        let ended = std::mem::replace(&mut self.drain, drain);
        ended.send_replace(true);
    }
}

async fn shut_down(running: Running) -> Result<(), ServeError> {
    match tokio::time::timeout(patience::RESIGN, running.shutdown()).await {
        Ok(StopReason::Shutdown) => Ok(()),
        Ok(other) => Err(ServeError::Stopped(other)),
        Err(_) => Err(ServeError::Stuck),
    }
}
