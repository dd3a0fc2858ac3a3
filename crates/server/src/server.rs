//! A server: a node with HTTP in front of it.

use std::net::SocketAddr;
use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_node::{Clock, Handle, RealClock, StopReason};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;

use crate::auth::Tenants;
use crate::config::{Config, ConfigError};
use crate::declarations::Declarations;
use crate::error::ServeError;
use crate::fences::Fences;
use crate::grpc::Losses;
use crate::http::forward::Connections;
use crate::http::{App, accept};
use crate::lives::{Lives, Parts};
use crate::logs::LogSink;
use crate::metrics::Metrics;
use crate::observer::ServerObserver;
use crate::peers::Peers;
use crate::place::Place;
use crate::signing::Signer;
use crate::tls::{Tls, TlsError};
use crate::traces::Traces;

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
    tls: Option<Arc<Tls>>,
    traces: Traces,
    signer: Option<Arc<Signer>>,
    declarations: Arc<Declarations>,
    following: Option<JoinHandle<()>>,
}

impl Server {
    /// Takes the address, opens the journal, starts the node, then listens. An address that is in use is therefore told
    /// before the journal is touched, and nobody is let in before there is somebody to answer.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn start(config: Config, components: Components) -> Result<Self, ServeError> {
        let is_shared = config.journal.is_remote();
        if is_shared {
            config.check_address()?;
        }
        let (advertise, scheme) = (config.advertise.clone(), config.scheme());
        let tls = config.tls.clone().map(Tls::load).transpose().map_err(unusable)?.map(Arc::new);
        let place = Place::take(config.listen)?;
        let parts = parts(config, components)?;
        let traces = parts.traces.clone();
        let signer = parts.signer.clone();
        let declarations = Arc::clone(&parts.declarations);
        let address = place.address;
        let url = advertise.unwrap_or_else(|| format!("{scheme}://{address}"));
        let running = parts.open(is_shared.then_some(url.as_str())).await?;
        let listener = match place.listen() {
            Ok(listener) => listener,
            Err(error) => {
                running.shutdown().await;
                return Err(error);
            }
        };
        // Before anybody can ask: whoever starts a protected server finds the first credential where it was promised.
        parts.let_first_in(running.handle()).await;
        let (stop, stopping) = watch::channel(false);
        let (lives, app) = Lives::new(parts, url, &running);
        let accepting = tokio::spawn(accept::serve(listener, tls.clone(), app.clone(), stopping.clone()));
        let lives = Some(tokio::spawn(lives.keep(running, stopping)));
        let following = tls.clone().map(|tls| tokio::spawn(tls.follow_files()));
        let server =
            Self { address, app, stop, lives, accepting, tls, traces, signer, declarations, following };
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
            role = status.role.as_str(),
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
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Reads certificates and signing keys again; what cannot be used is logged, and changes nothing.
    pub fn reload(&self) {
        if let Some(tls) = &self.tls {
            tls.reload();
        }
        if let Some(signer) = &self.signer {
            signer.reload();
        }
    }

    /// Serves with the policies and the tenants' quotas and rates of these settings from now on; the others are those of
    /// the start. The future ends when the table knows them, and the audit log has them. It is safe to drop.
    pub fn declare(&self, config: &Config) -> impl Future<Output = ()> + Send + use<> {
        let is_new = self.declarations.replace(config);
        let (declarations, handle) = (Arc::clone(&self.declarations), self.handle());
        async move {
            if is_new {
                info!(event = "settings_reloaded", "policies and quotas were read again");
                declarations.note(&handle).await;
            }
        }
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
        self.traces.flush().await;
        ended
    }

    async fn ended(&mut self) -> Result<(), ServeError> {
        let Some(lives) = &mut self.lives else { return Ok(()) };
        let ended = lives.await;
        self.lives = None;
        ended.unwrap_or(Err(ServeError::Stopped(StopReason::Died)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

fn unusable(error: TlsError) -> ConfigError {
    ConfigError::new("tls", error.to_string())
}

fn parts(config: Config, components: Components) -> Result<Parts, ConfigError> {
    let Components { journal, clock, log } = components;
    let metrics = Arc::new(Metrics::new(config.metrics, config.limits.policies.clone(), log.clone()));
    let traces = Traces::start(&config, Arc::clone(&clock))?;
    let losses = Arc::new(Losses::start());
    let observer = Arc::new(ServerObserver::new(Arc::clone(&metrics), Arc::clone(&losses), log));
    let tenants = Arc::new(Tenants::new(config.tenants.clone(), config.limits.watchers, Arc::clone(&clock)));
    let fences = Arc::new(Fences::new(Arc::clone(&clock), config.limits.policies.clone()));
    let declarations = Arc::new(Declarations::new(&config, Arc::clone(&tenants)));
    let peers = Arc::new(Peers::new(Arc::clone(&clock)));
    let connections = Connections::new(config.tls.as_ref()).map_err(unusable)?;
    let signer = config.signing_keys.clone().map(Signer::load).transpose()?.map(Arc::new);
    Ok(Parts {
        config,
        journal,
        clock,
        observer,
        metrics,
        traces,
        losses,
        tenants,
        fences,
        connections,
        peers,
        signer,
        declarations,
    })
}
