//! A server inside the test: for those who want to see what their own work does when a lock is lost.
//!
//! [`TestServer`] is the real server over a journal in memory, behind a small proxy. A test can cut the network, freeze
//! it, heal it, restart the server, let the server's time jump, let a lease expire and take one away. Nothing is left
//! behind when it is dropped. It is not for production: its journal forgets everything with the process.
//!
//! ```
//! use leasehold::testing::TestServer;
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let server = TestServer::start().await;
//! let client = server.client();
//! let guard = client.acquire("reports/daily").await.unwrap();
//! server.force_release("reports/daily").await;
//! let lost = guard.lost().await;
//! assert_eq!(lost.reason, leasehold::LostReason::Forced);
//! assert!(guard.checkpoint(std::time::Duration::ZERO).is_err());
//! # });
//! ```

mod clock;
mod proxy;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use leasehold_journal::MemoryJournal;
use leasehold_node::{Call, Handle, WatchFrom};
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, Config, RawConfig, Server};
use leasehold_types::{Durability, LeaseId, TenantName};

use crate::Client;
use clock::TestClock;
use proxy::{Network, Proxy};

use self::query::{explain, forced};

mod query;

/// A server inside the test. See the module.
pub struct TestServer {
    config: Config,
    journal: Arc<MemoryJournal>,
    clock: Arc<TestClock>,
    proxy: Proxy,
    server: Option<Server>,
    _data: tempfile::TempDir,
}

impl TestServer {
    /// Starts a server on a free port of this machine.
    ///
    /// # Panics
    /// No port, no temporary directory: the machine is not fit for the test.
    pub async fn start() -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".to_owned()),
            data: Some(data.path().to_owned()),
            node: Some("test".to_owned()),
            ..RawConfig::default()
        };
        let config = raw.resolve().expect("a valid configuration");
        let journal = Arc::new(MemoryJournal::with_durability(Durability::Durable));
        let clock = Arc::new(TestClock::new());
        let server = serve(&config, &journal, &clock).await;
        let proxy = Proxy::start(server.address()).await;
        Self { config, journal, clock, proxy, server: Some(server), _data: data }
    }

    /// Where clients reach it: through the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where clients reach it.
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// A client of it.
    ///
    /// # Panics
    /// Never: the address is valid.
    pub fn client(&self) -> Client {
        Client::new(&self.url()).expect("a valid URL")
    }

    /// A client whose network is always well: it goes past the proxy.
    ///
    /// # Panics
    /// The server is stopped.
    pub fn direct_client(&self) -> Client {
        let server = self.server.as_ref().expect("the server is stopped");
        Client::new(&server.url()).expect("a valid URL")
    }

    /// Cuts every connection and refuses new ones, until [`TestServer::heal`].
    pub fn cut(&self) {
        self.proxy.set(Network::Cut);
    }

    /// Lets nothing through, renewals included, and breaks nothing, until [`TestServer::heal`].
    pub fn freeze(&self) {
        self.proxy.set(Network::Frozen);
    }

    /// The network is well again.
    pub fn heal(&self) {
        self.proxy.set(Network::Well);
    }

    /// Stops the server in order, until [`TestServer::resume`]. What was acknowledged is kept.
    ///
    /// # Panics
    /// The server does not stop: a defect of it.
    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown().await.expect("an orderly end");
        }
    }

    /// Starts the server again after [`TestServer::stop`], on the same journal.
    pub async fn resume(&mut self) {
        if self.server.is_none() {
            let server = serve(&self.config, &self.journal, &self.clock).await;
            self.proxy.lead_to(server.address());
            self.server = Some(server);
        }
    }

    /// Stops the server and starts it again.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.resume().await;
    }

    /// Moves the server's clocks on by this much, in steps that it does not take for a pause of its own. The clients'
    /// clocks stay.
    pub async fn jump(&self, by: Duration) {
        self.clock.jump(by).await;
    }

    /// Lets every lease on this resource expire: renewals are dropped while the server's time passes. Leases of other
    /// resources with the same ttl or a shorter one expire as well, as they would when a process stands still.
    ///
    /// # Panics
    /// The server is stopped.
    pub async fn expire(&self, resource: &str) {
        self.freeze();
        while let Some(remaining) = explain(&self.handle(), resource).await {
            self.jump(remaining + Duration::from_millis(50)).await;
        }
        self.heal();
    }

    /// Takes the resource away from its holders, as an operator would.
    ///
    /// # Panics
    /// The server is stopped.
    pub async fn force_release(&self, resource: &str) {
        forced(&self.handle(), resource).await;
    }

    /// Gives a lease back by its id, past the guard that holds it, as anybody could who has the id.
    ///
    /// # Panics
    /// The server is stopped.
    pub async fn release(&self, lease: LeaseId) {
        query::released(&self.handle(), lease).await;
    }

    /// How many wait for a resource.
    ///
    /// # Panics
    /// The server is stopped.
    pub async fn waiters(&self, resource: &str) -> usize {
        query::waiters(&self.handle(), resource).await
    }

    /// Waits until so many wait for a resource.
    ///
    /// # Panics
    /// The server is stopped.
    pub async fn until_waiters(&self, resource: &str, n: usize) {
        let mut watch = self.handle().watch(TenantName::default_tenant(), WatchFrom::Now);
        while self.waiters(resource).await != n {
            // A withdrawal is no event; a look now and then finds it.
            drop(tokio::time::timeout(Duration::from_millis(20), watch.next()).await);
        }
    }

    fn handle(&self) -> Handle {
        self.server.as_ref().expect("the server is stopped").handle()
    }
}

impl std::fmt::Debug for TestServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestServer").field("address", &self.address()).finish_non_exhaustive()
    }
}

async fn serve(config: &Config, journal: &Arc<MemoryJournal>, clock: &Arc<TestClock>) -> Server {
    let components = Components {
        journal: Arc::<MemoryJournal>::clone(journal),
        clock: Arc::<TestClock>::clone(clock),
        log: LogSink::none(),
    };
    Server::start(config.clone(), components).await.expect("a server on a free port")
}

fn call(command: query::Command) -> Call {
    Call { tenant: TenantName::default_tenant(), identity: None, key: None, command }
}
