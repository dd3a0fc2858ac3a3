//! Configuration: defaults < file < environment < flags. [`RawConfig`] is what was written, [`Config`] is what it means.

mod access;
mod declared;
mod duration;
mod journal;
mod policy;
mod policy_book;
mod raw;
mod settings;
mod traces;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_types::{TtlBounds, limits};

pub use access::{RawTenant, RawTls, TenantLimit, TenantLimits, TlsFiles};
pub(crate) use declared::Declared;
pub use duration::{InvalidDuration, WrittenDuration};
pub use journal::{DEFAULT_CLUSTER, JournalConfig, JournalUrl, RawJournal};
pub use policy::{Policies, Policy, RawPolicy, Undeclared};
pub use policy_book::PolicyBook;
pub use raw::{RawConfig, RawLimits};
pub use settings::{SETTINGS, Setting, check_variables, settings_table};
pub use traces::{RawTraces, TraceSettings};

/// Where the server listens by default: this machine alone.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7420";
/// The data directory by default.
pub const DEFAULT_DATA: &str = "./leasehold-data";
/// Which log lines are written by default.
pub const DEFAULT_LOG: &str = "info";
const DEFAULT_BODY_BYTES: usize = 64 * 1024;
const DEFAULT_CONNECTIONS: usize = 10_000;
const DEFAULT_WATCHERS: usize = 1_000;
/// A batch of facts must fit into one slot of every journal, so bodies stay far below that.
const MOST_BODY_BYTES: usize = 1024 * 1024;

/// What a server is told when it starts. Illegal mixtures have no value.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// The node's name.
    pub node: String,
    /// The URL under which others reach this node.
    pub advertise: Option<String>,
    /// Who may speak to the server.
    pub hosts: HostPolicy,
    /// Which log lines are written.
    pub log: String,
    /// Count what happens to locks.
    pub metrics: bool,
    /// Where the state lives.
    pub journal: JournalConfig,
    /// Grant correctness locks although the journal can lose them.
    pub accept_lossy: bool,
    /// Callers must show who they are.
    pub protected: bool,
    /// Where certificates are; without them connections are in the clear.
    pub tls: Option<TlsFiles>,
    /// The file of keys that tokens are signed with; without it they are plain numbers alone.
    pub signing_keys: Option<PathBuf>,
    /// Bounds on what callers may ask.
    pub limits: Limits,
    /// What each tenant may have.
    pub tenants: TenantLimits,
    /// Where traces go; none are made without it.
    pub traces: Option<TraceSettings>,
}

/// Which `Host` a request may name, so that no web page reaches an open server under a name of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostPolicy {
    /// Loopback names and these.
    LoopbackAnd(Vec<String>),
    /// Whatever it is: on an address that others reach, where the names are theirs.
    Any,
}

/// Bounds on what callers may ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Ttl bounds.
    pub ttl: TtlBounds,
    /// Longest wait of one acquire.
    pub wait_max_ms: u64,
    /// Largest body of a request.
    pub body_bytes: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// Event streams at the same time.
    pub watchers: usize,
    /// What is said of names.
    pub policies: PolicyBook,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ttl: TtlBounds::default(),
            wait_max_ms: limits::WAIT_MAX_MS,
            body_bytes: DEFAULT_BODY_BYTES,
            connections: DEFAULT_CONNECTIONS,
            watchers: DEFAULT_WATCHERS,
            policies: PolicyBook::default(),
        }
    }
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {detail}")]
pub struct ConfigError {
    /// Which: a key, a variable, or `file`.
    pub setting: String,
    /// What is wrong with it.
    pub detail: String,
}

impl ConfigError {
    pub(crate) fn new(setting: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { setting: setting.into(), detail: detail.into() }
    }
}

impl RawConfig {
    /// Says what was meant.
    ///
    /// # Errors
    /// A value out of its bounds, or a mixture that would be unsafe.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let insecure = self.insecure.unwrap_or(false);
        let listen = listen_address(self.listen.as_deref().unwrap_or(DEFAULT_LISTEN))?;
        let tls = self.tls.resolve()?;
        let protected = access::is_protected(listen, self.auth, tls.is_some(), insecure)?;
        let cluster = self.cluster.as_deref().unwrap_or(DEFAULT_CLUSTER);
        // A password is looked up where it is used: no layer of settings that could be shown has it.
        let environment = |name: &str| std::env::var(name).ok();
        let config = Config {
            journal: self.journal.unwrap_or(RawJournal::Embedded {}).resolve(cluster, environment)?,
            accept_lossy: self.accept_correctness_locks_on_lossy_journal.unwrap_or(false),
            hosts: host_policy(listen, protected, self.allowed_hosts.unwrap_or_default())?,
            protected,
            tls,
            tenants: TenantLimits::resolve(&self.tenants)?,
            traces: self.traces.resolve()?,
            listen,
            data: self.data.unwrap_or_else(|| DEFAULT_DATA.into()),
            node: node_name(self.node)?,
            advertise: self.advertise,
            log: self.log.unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            metrics: self.metrics.unwrap_or(true),
            signing_keys: self.signing_keys,
            limits: Limits {
                policies: PolicyBook::new(Policies::resolve(
                    self.policies,
                    self.undeclared.unwrap_or_default(),
                )?),
                ..self.limits.resolve()?
            },
        };
        if config.advertise.is_some() {
            config.check_address()?;
        }
        Ok(config)
    }
}

impl Config {
    /// How its URL begins.
    pub(crate) const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether other nodes can reach this one where it says it is: needed as soon as a journal is shared.
    pub(crate) fn check_address(&self) -> Result<(), ConfigError> {
        let wrong = |detail: String| Err(ConfigError::new("advertise", detail));
        match &self.advertise {
            Some(url)
                if url.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some(self.scheme())) =>
            {
                Ok(())
            }
            Some(url) => {
                wrong(format!("`{url}` is not a URL such as {}://node-1.example:7420", self.scheme()))
            }
            None if self.listen.ip().is_unspecified() => wrong(format!(
                "the other nodes cannot reach this one at {}: say where they can, such as {}://node-1.example:7420",
                self.listen,
                self.scheme()
            )),
            None => Ok(()),
        }
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| {
        ConfigError::new("listen", format!("`{text}` is not an address and port, such as {DEFAULT_LISTEN}"))
    })
}

/// An open server on this machine alone has names of its own; one that knows its callers needs no such guard, and one that
/// others reach has whatever names they gave it.
fn host_policy(listen: SocketAddr, protected: bool, allowed: Vec<String>) -> Result<HostPolicy, ConfigError> {
    if let Some(bad) = allowed.iter().find(|name| name.is_empty() || name.contains(['/', ' ', '@'])) {
        return Err(ConfigError::new("allowed_hosts", format!("`{bad}` is not a host name")));
    }
    match (listen.ip().is_loopback() && !protected, allowed.is_empty()) {
        (false, true) => Ok(HostPolicy::Any),
        _ => Ok(HostPolicy::LoopbackAnd(allowed.iter().map(|name| name.to_ascii_lowercase()).collect())),
    }
}

fn node_name(written: Option<String>) -> Result<String, ConfigError> {
    let name = written.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    match name.len() {
        1..=256 if !name.chars().any(char::is_control) => Ok(name),
        _ => Err(ConfigError::new("node", "a name has 1 to 256 bytes without control characters")),
    }
}

impl RawLimits {
    fn resolve(self) -> Result<Limits, ConfigError> {
        let ms = |written: Option<WrittenDuration>, default: u64| {
            written.map_or(default, |d| u64::try_from(d.0.as_millis()).unwrap_or(u64::MAX))
        };
        let within = |setting: &str, value: usize, most: usize| match value {
            0 => Err(ConfigError::new(setting, "must be at least 1")),
            _ if value > most => Err(ConfigError::new(setting, format!("must be at most {most}"))),
            _ => Ok(value),
        };
        let ttl = TtlBounds {
            min_ms: ms(self.ttl_min, limits::TTL_MIN_MS),
            max_ms: ms(self.ttl_max, limits::TTL_MAX_MS),
        };
        let day_ms = 24 * 3_600_000;
        if ttl.min_ms == 0 || ttl.min_ms > ttl.max_ms || ttl.max_ms > day_ms {
            return Err(ConfigError::new(
                "limits.ttl_min",
                "must be above 0 and at most ttl_max, which is at most 24h",
            ));
        }
        let wait_max_ms = ms(self.wait_max, limits::WAIT_MAX_MS);
        if wait_max_ms > day_ms {
            return Err(ConfigError::new("limits.wait_max", "must be at most 24h"));
        }
        Ok(Limits {
            ttl,
            wait_max_ms,
            body_bytes: within(
                "limits.body_bytes",
                self.body_bytes.unwrap_or(DEFAULT_BODY_BYTES),
                MOST_BODY_BYTES,
            )?,
            connections: within(
                "limits.connections",
                self.connections.unwrap_or(DEFAULT_CONNECTIONS),
                1_000_000,
            )?,
            watchers: within("limits.watchers", self.watchers.unwrap_or(DEFAULT_WATCHERS), 1_000_000)?,
            policies: PolicyBook::default(),
        })
    }
}

/// How long things may take on a connection. Constants, each with its reason.
pub(crate) mod patience {
    use super::Duration;

    /// How often a connection is looked at. A head must be whole, and the first byte there, within two looks: a slow
    /// network delivers a head in far less, and a slowloris holds a place for no longer.
    pub(crate) const LOOK: Duration = Duration::from_secs(5);
    /// Looks after which an idle kept-alive connection is closed: two minutes, longer than the pools of common clients.
    pub(crate) const IDLE_LOOKS: u32 = 24;
    /// A body of at most [`super::Limits::body_bytes`] arrives within this.
    pub(crate) const BODY: Duration = Duration::from_secs(10);
    /// A TLS handshake is two round trips and some arithmetic.
    pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
    /// A client that takes no byte of its answer for this long is gone.
    pub(crate) const WRITE: Duration = Duration::from_secs(20);
    /// After an answer that left part of a body unread, so long and so much is still taken from the client, so that it
    /// reads the answer instead of a reset.
    pub(crate) const LINGER: Duration = Duration::from_secs(2);
    /// See [`LINGER`].
    pub(crate) const LINGER_BYTES: usize = 32 << 20;
    /// How often a silent event stream shows that it is alive: below the idle time-out of common proxies.
    pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
    /// How long the node may take to commit what it has taken and to resign, at shutdown. A disk or an engine that is
    /// stuck for longer may be stuck for ever; what supervises processes usually kills after 10 s.
    pub(crate) const RESIGN: Duration = Duration::from_secs(5);
    /// How long connections may take to finish at shutdown, once the node has answered everything.
    pub(crate) const DRAIN: Duration = Duration::from_secs(5);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_written_is_an_open_server_on_this_machine() {
        let config = RawConfig::default().resolve().unwrap();
        assert_eq!(config.listen.to_string(), DEFAULT_LISTEN);
        assert_eq!(config.hosts, HostPolicy::LoopbackAnd(Vec::new()));
        assert_eq!(config.limits, Limits::default());
    }

    #[test]
    fn later_layers_win() {
        let file = RawConfig::from_toml("listen = \"127.0.0.1:1\"\nnode = \"a\"\n[limits]\nttl_min = \"2s\"")
            .unwrap();
        let env = |name: &str| (name == "LEASEHOLD_LISTEN").then(|| "127.0.0.1:2".to_owned());
        let flags = RawConfig { node: Some("c".into()), ..RawConfig::default() };
        let config = file.under(RawConfig::from_env(env).unwrap()).under(flags).resolve().unwrap();
        assert_eq!((config.listen.port(), config.node.as_str(), config.limits.ttl.min_ms), (2, "c", 2_000));
    }

    #[test]
    fn unknown_keys_and_bad_values_are_errors_that_name_them() {
        for (text, named) in [
            ("lisen = \"x\"", "lisen"),
            ("[limits]\nttl = \"1s\"", "ttl"),
            ("[limits]\nttl_min = 5", "ttl_min"),
            ("[limits]\nttl_min = \"5\"", "is not a duration"),
            ("[journal]\nkind = \"floppy\"", "floppy"),
            ("[journal]\nkind = \"embedded\"\nurl = \"x\"", "url"),
        ] {
            let error = RawConfig::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn others_reach_the_server_only_when_that_is_said() {
        let raw = |insecure| RawConfig {
            listen: Some("0.0.0.0:7420".into()),
            insecure: Some(insecure),
            ..RawConfig::default()
        };
        let refused = raw(false).resolve().unwrap_err();
        assert!(refused.detail.contains("--insecure"), "{refused}");
        assert_eq!(raw(true).resolve().unwrap().hosts, HostPolicy::Any);
    }

    #[test]
    fn bounds_that_contradict_each_other_are_errors() {
        for text in [
            "ttl_min = \"2h\"",
            "ttl_min = \"0s\"",
            "ttl_max = \"48h\"",
            "body_bytes = 0",
            "wait_max = \"25h\"",
        ] {
            assert!(RawConfig::from_toml(&format!("[limits]\n{text}")).unwrap().resolve().is_err(), "{text}");
        }
    }
}
