//! A server: a node with HTTP in front of it.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use leasehold_journal::Journal;
use leasehold_node::{Clock, Handle, NodeConfig, RealClock, Running, StopReason};
use leasehold_types::TenantName;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tracing::info;

use crate::config::Config;
use crate::error::ServeError;
use crate::grpc::Losses;
use crate::http::{App, accept};
use crate::logs::LogSink;
use crate::metrics::Metrics;
use crate::observer::ServerObserver;

/// What a server is built from, besides its settings.
pub struct Components {
    /// Where the state lives.
    pub journal: Arc<dyn Journal>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where lock events are logged.
    pub log: LogSink,
}

impl Components {
    /// The journal that the settings name, the clocks of this machine.
    pub fn new(config: &Config, log: LogSink) -> Self {
        Self { journal: crate::journal::chosen(config), clock: Arc::new(RealClock), log }
    }
}

/// A server that serves. Dropping it closes its connections; [`Server::shutdown`] ends it in order.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    running: Running,
    drain: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Opens the journal, starts the node, then listens. A directory that is in use is therefore told before an address
    /// that is in use.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn start(config: Config, components: Components) -> Result<Self, ServeError> {
        let metrics = Arc::new(Metrics::new(components.log.clone()));
        let losses = Arc::new(Losses::start());
        let observer =
            Arc::new(ServerObserver::new(Arc::clone(&metrics), Arc::clone(&losses), components.log));
        let node_config = NodeConfig::new(config.node.as_str(), &config.data);
        let running =
            leasehold_node::start(node_config, components.journal, components.clock, observer).await?;
        metrics.took_over();
        let listener = match TcpListener::bind(config.listen).await {
            Ok(listener) => listener,
            Err(error) => {
                running.shutdown().await;
                return Err(ServeError::Listen { address: config.listen, error });
            }
        };
        let address = listener.local_addr().map_err(ServeError::System)?;
        let (drain, draining) = watch::channel(false);
        let app = Arc::new(app(&config, address, running.handle(), metrics, losses, draining.clone()));
        let accepting = tokio::spawn(accept::serve(listener, app, draining));
        let server = Self { address, running, drain, accepting };
        server.announce();
        Ok(server)
    }

    fn announce(&self) {
        let status = self.running.handle().status();
        info!(
            event = "serving",
            url = self.url(),
            cluster = %status.cluster,
            epoch = status.epoch.0,
            journal = status.journal,
            durability = %status.durability,
            locks = status.counts.leases,
            "serving on {}",
            self.url()
        );
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The node behind it.
    pub fn handle(&self) -> Handle {
        self.running.handle()
    }

    /// Waits until the node has stopped by itself. Cancel-safe.
    pub async fn stopped(&mut self) -> StopReason {
        self.running.stopped().await
    }

    /// Ends in order: no new connections, streams closed, everything that was taken answered, the journal resigned.
    /// Connections that do not take their answers in a few seconds are cut.
    ///
    /// # Errors
    /// The node had stopped by itself before.
    pub async fn shutdown(self) -> Result<(), ServeError> {
        self.drain.send_replace(true);
        let reason = self.running.shutdown().await;
        // The accept loop has a time limit of its own; a panic of it has been told already.
        drop(self.accepting.await);
        match reason {
            StopReason::Shutdown => Ok(()),
            other => Err(ServeError::Stopped(other)),
        }
    }
}

fn app(
    config: &Config,
    address: SocketAddr,
    handle: Handle,
    metrics: Arc<Metrics>,
    losses: Arc<Losses>,
    drain: watch::Receiver<bool>,
) -> App {
    let status = handle.status();
    let epoch = format!("{}/{}", status.cluster, status.epoch);
    App {
        epoch: HeaderValue::from_str(&epoch).expect("a UUID and a number are a valid header"),
        handle,
        limits: config.limits,
        hosts: config.hosts.clone(),
        address: config.advertise.clone().unwrap_or_else(|| format!("http://{address}")),
        metrics,
        tenant: TenantName::default_tenant(),
        watchers: Arc::new(Semaphore::new(config.limits.watchers)),
        drain,
        losses,
    }
}
