//! A server: a node with HTTP in front of it.

use std::net::SocketAddr;
use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_node::{Clock, Handle, RealClock, StopReason};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tracing::info;

use crate::config::Config;
use crate::error::ServeError;
use crate::grpc::Losses;
use crate::http::{App, accept};
use crate::lives::{Lives, Parts};
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
        Self {
            journal: crate::journal::chosen(&config.journal, &config.data),
            clock: Arc::new(RealClock),
            log,
        }
    }
}

/// A server that serves. Dropping it closes its connections; [`Server::shutdown`] ends it in order.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    app: watch::Receiver<Arc<App>>,
    stop: watch::Sender<bool>,
    /// Absent once it has been told how it ended.
    lives: Option<JoinHandle<Result<(), ServeError>>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Opens the journal, starts the node, then listens. A directory that is in use is therefore told before an address
    /// that is in use.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn start(config: Config, components: Components) -> Result<Self, ServeError> {
        let (listen, advertise) = (config.listen, config.advertise.clone());
        let parts = parts(config, components);
        let running = parts.open().await?;
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(error) => {
                running.shutdown().await;
                return Err(ServeError::Listen { address: listen, error });
            }
        };
        let address = listener.local_addr().map_err(ServeError::System)?;
        let (stop, stopping) = watch::channel(false);
        let told_address = advertise.unwrap_or_else(|| format!("http://{address}"));
        let (lives, app) = Lives::new(parts, told_address, &running);
        let accepting = tokio::spawn(accept::serve(listener, app.clone(), stopping.clone()));
        let lives = Some(tokio::spawn(lives.keep(running, stopping)));
        let server = Self { address, app, stop, lives, accepting };
        server.announce();
        Ok(server)
    }

    fn announce(&self) {
        let status = self.handle().status();
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

    /// The node behind it, as it is now.
    pub fn handle(&self) -> Handle {
        self.app.borrow().handle.clone()
    }

    /// Waits until the node has stopped by itself, for good: why. Cancel-safe.
    pub async fn stopped(&mut self) -> ServeError {
        match self.ended().await {
            Err(error) => error,
            Ok(()) => ServeError::Stopped(StopReason::Shutdown),
        }
    }

    /// Ends in order: no new connections, streams closed, everything that was taken answered, the journal resigned.
    /// Connections that do not take their answers in a few seconds are cut, and so is a journal that does not finish.
    ///
    /// # Errors
    /// The node had stopped by itself before, or did not stop in time.
    pub async fn shutdown(mut self) -> Result<(), ServeError> {
        self.stop.send_replace(true);
        let ended = self.ended().await;
        // The accept loop has a time limit of its own; a panic of it has been told already.
        drop((&mut self.accepting).await);
        ended
    }

    async fn ended(&mut self) -> Result<(), ServeError> {
        let Some(lives) = &mut self.lives else { return Ok(()) };
        let ended = lives.await;
        self.lives = None;
        ended.unwrap_or(Err(ServeError::Stopped(StopReason::Died)))
    }
}

fn parts(config: Config, components: Components) -> Parts {
    let Components { journal, clock, log } = components;
    let metrics = Arc::new(Metrics::new(log.clone()));
    let losses = Arc::new(Losses::start());
    let observer = Arc::new(ServerObserver::new(Arc::clone(&metrics), Arc::clone(&losses), log));
    let watchers = Arc::new(Semaphore::new(config.limits.watchers));
    Parts { config, journal, clock, observer, metrics, losses, watchers }
}
