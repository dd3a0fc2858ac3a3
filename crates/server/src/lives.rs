//! The lives of a server's node, one after the other: standing by, active, standing by again.
//!
//! The node itself steps down and takes over (N2, N6). Here every life, and every active node that a standby forwards
//! to, has an [`App`] of its own, so that no connection or stream of one is answered by another.

use std::sync::Arc;

use http::HeaderValue;
use leasehold_journal::Journal;
use leasehold_node::{Clock, Handle, NodeConfig, Observer, Running, SharedJournal, StartError, StopReason};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::auth::{Access, Tenants, make_first};
use crate::config::{Config, patience};
use crate::declarations::Declarations;
use crate::error::ServeError;
use crate::fences::Fences;
use crate::grpc::Losses;
use crate::http::forward::{Connections, Forward};
use crate::http::{App, Base, draining};
use crate::metrics::Metrics;
use crate::peers::{KNOCK, Peers};
use crate::signing::Signer;
use crate::traces::Traces;

/// What every life is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    pub(crate) losses: Arc<Losses>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) connections: Connections,
    pub(crate) peers: Arc<Peers>,
    pub(crate) fences: Arc<Fences>,
    pub(crate) signer: Option<Arc<Signer>>,
    pub(crate) declarations: Arc<Declarations>,
}

impl Parts {
    /// Opens the journal and starts a node on it. With an address the journal may be shared with other nodes.
    pub(crate) async fn open(&self, shared_at: Option<&str>) -> Result<Running, StartError> {
        let mut node = NodeConfig::new(self.config.node.as_str(), &self.config.data);
        node.correctness_despite_loss = self.config.accept_lossy;
        node.quotas = self.config.tenants.quotas();
        node.shared = shared_at.map(SharedJournal::new);
        let (journal, clock) = (Arc::clone(&self.journal), Arc::clone(&self.clock));
        leasehold_node::start(node, journal, clock, Arc::clone(&self.observer)).await
    }

    fn app(&self, address: &str, handle: Handle) -> (Arc<App>, watch::Sender<bool>) {
        let (drain, draining) = watch::channel(false);
        let status = handle.status();
        let epoch = format!("{}/{}", status.cluster, status.epoch);
        let elsewhere = status.active.filter(|active| !active.here);
        let from = format!("{} {address}", self.config.node);
        let (connections, own) = (&self.connections, &handle);
        let forward = elsewhere
            .map(|active| Forward::new(connections.clone(), active, &from, own.clone(), draining.clone()));
        let base = Base {
            epoch: HeaderValue::from_str(&epoch).expect("a UUID and a number are a valid header"),
            durability: HeaderValue::from_static(status.durability.as_str()),
            handle,
            forward,
            peers: Arc::clone(&self.peers),
            since: self.peers.now(),
            limits: self.config.limits.clone(),
            hosts: self.config.hosts.clone(),
            address: address.to_owned(),
            metrics: Arc::clone(&self.metrics),
            traces: self.traces.clone(),
            access: if self.config.protected { Access::Protected } else { Access::Open },
            clock: Arc::clone(&self.clock),
            tenants: Arc::clone(&self.tenants),
            fences: Arc::clone(&self.fences),
            drain: draining,
            losses: Arc::clone(&self.losses),
            signer: self.signer.clone(),
        };
        (Arc::new(App::new(base)), drain)
    }

    /// What an active node does first: notes the policies and quotas that it serves with, and lets somebody in, if nobody
    /// may come in yet to a protected server.
    pub(crate) fn let_first_in(&self, handle: Handle) -> impl Future<Output = ()> + Send + use<> {
        let declarations = Arc::clone(&self.declarations);
        let (clock, data) = (Arc::clone(&self.clock), self.config.data.clone());
        let (protected, is_shared) = (self.config.protected, self.config.journal.is_remote());
        async move {
            declarations.note(&handle).await;
            if protected {
                make_first(&handle, &*clock, &data, is_shared).await;
            }
        }
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
        let (app, drain) = parts.app(&address, running.handle());
        let (current, present) = watch::channel(app);
        (Self { parts, address, current, drain }, present)
    }

    /// Serves until `stop` turns true, or the node stops: the error says why.
    pub(crate) async fn keep(
        mut self,
        mut running: Running,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), ServeError> {
        let handle = running.handle();
        let mut active = handle.active();
        let mut knock = tokio::time::interval(KNOCK);
        knock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                reason = running.stopped() => return Err(ServeError::Stopped(reason)),
                () = draining(&mut stop) => {
                    self.drain.send_replace(true);
                    return shut_down(running).await;
                }
                Ok(()) = active.changed() => {
                    self.change(handle.clone());
                    self.knock();
                    tokio::spawn(self.parts.let_first_in(handle.clone()));
                }
                _ = knock.tick() => self.knock(),
            }
        }
    }

    /// A standby shows the active node that it is there, and learns who else is.
    fn knock(&self) {
        if let Some(forward) = self.current.borrow().forward.clone() {
            let peers = Arc::clone(&self.parts.peers);
            tokio::spawn(async move {
                if let Some(nodes) = forward.knock().await {
                    peers.was_told(nodes);
                }
            });
        }
    }

    /// Ends everything of the present [`App`], and puts the next one into its place.
    fn change(&mut self, handle: Handle) {
        let (app, drain) = self.parts.app(&self.address, handle);
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
