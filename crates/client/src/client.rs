//! The way in.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_trace::Tracer;
use leasehold_types::{OwnerId, limits};
use tokio::sync::Semaphore;
use tonic::transport::Endpoint;

use crate::acquire::Acquire;
use crate::connections::Connections;
use crate::election::Election;
use crate::security::Security;
use crate::session::Session;

/// Where a server listens by default.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7420";
/// How long an operation tries to reach the service by default, beyond the wait that was asked for.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Questions at a time who holds what was lost: for people, who read a few of them.
const LOOK_UPS: usize = 16;

/// What a client was told; shared by its sessions.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) endpoints: Vec<Connections>,
    pub(crate) owner: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) patience: Duration,
    /// Leases that ended under the hands of their holders, not yet reported.
    pub(crate) expired_while_executing: AtomicU32,
    /// Places for questions who holds what was lost.
    pub(crate) look_ups: Arc<Semaphore>,
    /// Where spans go.
    pub(crate) tracer: Option<Tracer>,
}

/// A client of the lock service. Cheap to clone; must be used inside a tokio runtime.
///
/// It opens one session for each ttl that is asked for, when it is first asked for, and shares it between all leases of
/// that ttl: one keep-alive renews them all. The sessions are closed when the client and its guards are dropped.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Arc<Settings>,
    sessions: Mutex<BTreeMap<Duration, Session>>,
}

/// The client cannot be made as described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidClient(String);

impl Client {
    /// A client of one server, with everything else left to its default. Nothing is sent yet.
    ///
    /// # Errors
    /// Not a URL such as `http://127.0.0.1:7420`.
    pub fn new(endpoint: &str) -> Result<Self, InvalidClient> {
        Self::builder().endpoint(endpoint).build()
    }

    /// Describes a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Asks for a resource. Nothing is sent before the returned request is awaited.
    pub fn acquire(&self, resource: impl Into<String>) -> Acquire {
        Acquire::of_client(self.clone(), resource.into())
    }

    /// An election by its name.
    pub fn election(&self, name: impl Into<String>) -> Election {
        Election::new(self.clone(), name.into())
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// A session of its own, for leases that are to live and end together.
    pub fn session(&self, ttl: Duration) -> Session {
        Session::open(Arc::clone(&self.inner.settings), ttl)
    }

    /// Closes the shared sessions and waits, at most a few seconds, until what was under way has left. Guards of this
    /// client are lost.
    pub async fn close(self) {
        let sessions: Vec<_> = {
            let mut sessions =
                self.inner.sessions.lock().expect("nothing panics while it holds the sessions");
            std::mem::take(&mut *sessions).into_values().collect()
        };
        for session in sessions {
            session.close().await;
        }
    }

    /// The shared session of this ttl; a new one if the last is over.
    pub(crate) fn shared_session(&self, ttl: Duration) -> Session {
        let mut sessions = self.inner.sessions.lock().expect("nothing panics while it holds the sessions");
        match sessions.get(&ttl) {
            // A session that is full lives on with its guards.
            Some(session) if !session.is_over() && !session.shared().is_full() => session.clone(),
            _ => {
                let session = self.session(ttl);
                sessions.insert(ttl, session.clone());
                session
            }
        }
    }
}

/// Describes a client.
#[derive(Clone, Debug, Default)]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    owner: Option<String>,
    labels: BTreeMap<String, String>,
    patience: Option<Duration>,
    security: Security,
    tracer: Option<Tracer>,
}

impl ClientBuilder {
    /// What the environment says: `LEASEHOLD_SERVER` (several with commas between), `LEASEHOLD_CA`, `LEASEHOLD_CERT` and
    /// `LEASEHOLD_KEY`, `LEASEHOLD_CREDENTIAL_FILE` or `LEASEHOLD_CREDENTIAL`; the same that the command line reads.
    pub fn from_env() -> Self {
        let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoints = given("LEASEHOLD_SERVER")
            .map_or_else(Vec::new, |list| list.split(',').map(|url| url.trim().to_owned()).collect());
        Self { endpoints, security: Security::from_lookup(given), ..Self::default() }
    }

    /// One more server, as a URL. They are tried in turn; the default is the address where a server listens by default.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoints.push(url.into());
        self
    }

    /// Who holds what is acquired, for people. Default: the program's name and its process id.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// A label of every session.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// How long an operation tries to reach the service, beyond the wait that was asked for. Default 10 s: a restart of
    /// the server is over by then.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// How to prove who one is, and make sure whom one speaks to.
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Makes a span of every acquire and sends it there. Without it an acquire still passes on the trace that it is part of.
    #[must_use]
    pub fn traces(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    /// An endpoint is not a URL, the owner is not a name, or a certificate or credential cannot be read.
    pub fn build(self) -> Result<Client, InvalidClient> {
        let urls = if self.endpoints.is_empty() { vec![DEFAULT_ENDPOINT.to_owned()] } else { self.endpoints };
        let security = Arc::new(self.security);
        security.authorize().map_err(InvalidClient)?;
        security.tls().map_err(|unreadable| InvalidClient(unreadable.to_string()))?;
        let connections = |url: &String| Ok(Connections::new(endpoint(url)?, Arc::clone(&security)));
        let endpoints = urls.iter().map(connections).collect::<Result<_, _>>()?;
        let owner = self.owner.unwrap_or_else(default_owner);
        OwnerId::new(&owner).map_err(|invalid| InvalidClient(invalid.to_string()))?;
        let patience = self.patience.unwrap_or(PATIENCE);
        let settings = Arc::new(Settings {
            endpoints,
            owner,
            labels: self.labels,
            patience,
            expired_while_executing: AtomicU32::new(0),
            look_ups: Arc::new(Semaphore::new(LOOK_UPS)),
            tracer: self.tracer,
        });
        Ok(Client { inner: Arc::new(Inner { settings, sessions: Mutex::default() }) })
    }
}

fn endpoint(url: &str) -> Result<Endpoint, InvalidClient> {
    let invalid =
        |why: &dyn std::fmt::Display| InvalidClient(format!("{url} is not the URL of a server: {why}"));
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| invalid(&error))?;
    match endpoint.uri().scheme_str() {
        Some("http" | "https") => Ok(endpoint.connect_timeout(CONNECT_PATIENCE).tcp_nodelay(true)),
        _ => Err(invalid(&"it must begin with http:// or https://")),
    }
}

fn default_owner() -> String {
    let program = std::env::args().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(limits::OWNER_BYTES / 8).collect();
    format!("{name}:{}", std::process::id())
}
