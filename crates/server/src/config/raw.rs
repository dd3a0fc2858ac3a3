//! What was written: in a file, in the environment, in flags. Nothing is checked here except spelling.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::access::{RawTenant, RawTls};
use super::duration::WrittenDuration;
use super::policy::{RawPolicy, Undeclared};
use super::traces::RawTraces;
use super::{ConfigError, RawJournal};

/// Settings as they are written; what is left out comes from the layer below. Turned into a [`super::Config`] by
/// [`RawConfig::resolve`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Where to listen. A host name is not looked up, so that a server cannot end up on another address than written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// The data directory: the embedded journal, and the witness with every journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Serve an address that others can reach without authentication or without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// Callers must show who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<bool>,
    /// The node's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The URL under which others reach this node, for people and standbys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise: Option<String>,
    /// Names that `Host` may have besides loopback names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_hosts: Option<Vec<String>>,
    /// Which log lines are written: a level, or directives such as `warn,leasehold=debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Count what happens to locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<bool>,
    /// Where the state lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<RawJournal>,
    /// The name that tells clusters on one engine apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Grant correctness locks although the journal can lose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_correctness_locks_on_lossy_journal: Option<bool>,
    /// What becomes of acquires of names that no policy declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeclared: Option<Undeclared>,
    /// The file of keys that tokens are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_keys: Option<PathBuf>,
    /// Certificates.
    #[serde(default, skip_serializing_if = "RawTls::is_empty")]
    pub tls: RawTls,
    /// Where traces go.
    #[serde(default, skip_serializing_if = "RawTraces::is_empty")]
    pub traces: RawTraces,
    /// Bounds on what callers may ask.
    #[serde(default, skip_serializing_if = "RawLimits::is_empty")]
    pub limits: RawLimits,
    /// What each tenant may have, by its name; `*` is every other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tenants: BTreeMap<String, RawTenant>,
    /// What is said of names by how they begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<RawPolicy>,
}

/// Bounds on what callers may ask.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLimits {
    /// Shortest ttl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_min: Option<WrittenDuration>,
    /// Longest ttl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_max: Option<WrittenDuration>,
    /// Longest wait of one acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_max: Option<WrittenDuration>,
    /// Largest body of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
    /// Connections at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// Event streams at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchers: Option<usize>,
}

impl RawLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RawConfig {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Not TOML, an unknown key, a value of the wrong kind; the message names key and line.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text)
            .map_err(|error| ConfigError::new("file", error.to_string().trim_end().to_owned()))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`RawConfig::from_toml`], or the file cannot be read.
    pub fn from_file(path: &std::path::Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::new("file", format!("cannot read {}: {error}", path.display())))?;
        Self::from_toml(&text)
            .map_err(|error| ConfigError::new("file", format!("{}: {}", path.display(), error.detail)))
    }

    /// Reads the environment: `LEASEHOLD_` and the key in capitals. Lists are separated by commas. Other variables with
    /// that prefix are left alone: clients use some. One that is nearly a setting is found by [`super::check_variables`].
    ///
    /// # Errors
    /// A value of the wrong kind; the message names the variable.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        fn parsed<T: std::str::FromStr>(
            name: &'static str,
            value: Option<String>,
        ) -> Result<Option<T>, ConfigError>
        where
            T::Err: std::fmt::Display,
        {
            let parse = |text: String| {
                text.parse().map_err(|error: T::Err| ConfigError::new(name, error.to_string()))
            };
            value.map(parse).transpose()
        }
        Ok(Self {
            listen: lookup("LEASEHOLD_LISTEN"),
            data: lookup("LEASEHOLD_DATA").map(PathBuf::from),
            insecure: parsed("LEASEHOLD_INSECURE", lookup("LEASEHOLD_INSECURE"))?,
            auth: parsed("LEASEHOLD_AUTH", lookup("LEASEHOLD_AUTH"))?,
            node: lookup("LEASEHOLD_NODE"),
            advertise: lookup("LEASEHOLD_ADVERTISE"),
            allowed_hosts: lookup("LEASEHOLD_ALLOWED_HOSTS")
                .map(|list| list.split(',').map(str::to_owned).collect()),
            log: lookup("LEASEHOLD_LOG"),
            metrics: parsed("LEASEHOLD_METRICS", lookup("LEASEHOLD_METRICS"))?,
            journal: lookup("LEASEHOLD_JOURNAL").map(|url| RawJournal::from_url(&url)).transpose()?,
            cluster: lookup("LEASEHOLD_CLUSTER"),
            accept_correctness_locks_on_lossy_journal: parsed(
                "LEASEHOLD_ACCEPT_CORRECTNESS_LOCKS_ON_LOSSY_JOURNAL",
                lookup("LEASEHOLD_ACCEPT_CORRECTNESS_LOCKS_ON_LOSSY_JOURNAL"),
            )?,
            undeclared: parsed("LEASEHOLD_UNDECLARED", lookup("LEASEHOLD_UNDECLARED"))?,
            signing_keys: lookup("LEASEHOLD_SIGNING_KEYS").map(PathBuf::from),
            tls: RawTls {
                cert: lookup("LEASEHOLD_TLS_CERT").map(PathBuf::from),
                key: lookup("LEASEHOLD_TLS_KEY").map(PathBuf::from),
                client_ca: lookup("LEASEHOLD_TLS_CLIENT_CA").map(PathBuf::from),
                peer_ca: lookup("LEASEHOLD_TLS_PEER_CA").map(PathBuf::from),
            },
            traces: RawTraces {
                endpoint: lookup("LEASEHOLD_TRACES_ENDPOINT"),
                ratio: parsed("LEASEHOLD_TRACES_RATIO", lookup("LEASEHOLD_TRACES_RATIO"))?,
            },
            tenants: BTreeMap::new(),
            policies: Vec::new(),
            limits: RawLimits {
                ttl_min: parsed("LEASEHOLD_TTL_MIN", lookup("LEASEHOLD_TTL_MIN"))?,
                ttl_max: parsed("LEASEHOLD_TTL_MAX", lookup("LEASEHOLD_TTL_MAX"))?,
                wait_max: parsed("LEASEHOLD_WAIT_MAX", lookup("LEASEHOLD_WAIT_MAX"))?,
                body_bytes: parsed("LEASEHOLD_BODY_BYTES", lookup("LEASEHOLD_BODY_BYTES"))?,
                connections: parsed("LEASEHOLD_CONNECTIONS", lookup("LEASEHOLD_CONNECTIONS"))?,
                watchers: parsed("LEASEHOLD_WATCHERS", lookup("LEASEHOLD_WATCHERS"))?,
            },
        })
    }

    /// This layer with `over` on top of it.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            listen: over.listen.or(self.listen),
            data: over.data.or(self.data),
            insecure: over.insecure.or(self.insecure),
            auth: over.auth.or(self.auth),
            node: over.node.or(self.node),
            advertise: over.advertise.or(self.advertise),
            allowed_hosts: over.allowed_hosts.or(self.allowed_hosts),
            log: over.log.or(self.log),
            metrics: over.metrics.or(self.metrics),
            journal: over.journal.or(self.journal),
            cluster: over.cluster.or(self.cluster),
            accept_correctness_locks_on_lossy_journal: over
                .accept_correctness_locks_on_lossy_journal
                .or(self.accept_correctness_locks_on_lossy_journal),
            undeclared: over.undeclared.or(self.undeclared),
            signing_keys: over.signing_keys.or(self.signing_keys),
            tls: self.tls.under(over.tls),
            traces: self.traces.under(over.traces),
            tenants: if over.tenants.is_empty() { self.tenants } else { over.tenants },
            policies: if over.policies.is_empty() { self.policies } else { over.policies },
            limits: RawLimits {
                ttl_min: over.limits.ttl_min.or(self.limits.ttl_min),
                ttl_max: over.limits.ttl_max.or(self.limits.ttl_max),
                wait_max: over.limits.wait_max.or(self.limits.wait_max),
                body_bytes: over.limits.body_bytes.or(self.limits.body_bytes),
                connections: over.limits.connections.or(self.limits.connections),
                watchers: over.limits.watchers.or(self.limits.watchers),
            },
        }
    }
}
