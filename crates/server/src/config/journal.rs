//! Which journal: as written, and as meant.

use std::fmt;

use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_journal_redis::{RedisConfig, RedisJournal};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// The cluster's name when none is written.
pub const DEFAULT_CLUSTER: &str = "main";

/// Where the state lives, by kind, as written. Each kind is a variant with its own settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum RawJournal {
    /// In the data directory.
    Embedded {},
    /// On etcd.
    Etcd {
        /// `etcd://host1,host2`.
        url: JournalUrl,
    },
    /// On PostgreSQL.
    Postgres {
        /// `postgres://user@host/database`.
        url: JournalUrl,
    },
    /// On Redis: for efficiency locks.
    Redis {
        /// `redis://host:6379/0`.
        url: JournalUrl,
    },
    /// On ZooKeeper.
    Zookeeper {
        /// `zookeeper://host1,host2`.
        url: JournalUrl,
    },
}

/// The address of an engine. It may have a password in it, so it is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JournalUrl(pub String);

impl JournalUrl {
    fn scheme(&self) -> &str {
        self.0.split("://").next().unwrap_or_default()
    }
}

impl fmt::Debug for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://…", self.scheme())
    }
}

impl RawJournal {
    /// Reads what `--journal` or `LEASEHOLD_JOURNAL` says.
    ///
    /// # Errors
    /// A kind that this build does not have.
    pub fn from_url(text: &str) -> Result<Self, ConfigError> {
        let url = JournalUrl(text.to_owned());
        match url.scheme() {
            "embedded" if matches!(text, "embedded" | "embedded://") => Ok(Self::Embedded {}),
            "embedded" => {
                Err(wrong("the embedded journal is in the data directory (--data): write `embedded` alone"))
            }
            "etcd" => Ok(Self::Etcd { url }),
            "postgres" | "postgresql" => Ok(Self::Postgres { url }),
            "redis" | "rediss" => Ok(Self::Redis { url }),
            "zookeeper" => Ok(Self::Zookeeper { url }),
            // What is before `://` has no secret; a text without it may be one.
            scheme => {
                let named = if text.contains("://") { format!("`{scheme}://`") } else { "this".to_owned() };
                let known = "`embedded`, `etcd://`, `postgres://`, `redis://` and `zookeeper://`";
                Err(wrong(format!("{named} is no journal of this build, which has {known}")))
            }
        }
    }

    /// Says what was meant. Certificates are read, nothing is connected to. `environment` is asked for a password that
    /// neither the URL nor a file has.
    pub(super) fn resolve(
        self,
        cluster: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<JournalConfig, ConfigError> {
        match self {
            Self::Embedded {} => Ok(JournalConfig::Embedded),
            Self::Etcd { url } => EtcdConfig::from_url(&url.0, cluster, environment)
                .and_then(EtcdJournal::new)
                .map(JournalConfig::Etcd)
                .map_err(wrong),
            Self::Postgres { url } => PostgresConfig::from_url(&url.0, cluster, environment)
                .and_then(PostgresJournal::new)
                .map(JournalConfig::Postgres)
                .map_err(wrong),
            Self::Redis { url } => RedisConfig::from_url(&url.0, cluster, environment)
                .map(RedisJournal::new)
                .map(JournalConfig::Redis)
                .map_err(wrong),
            Self::Zookeeper { url } => ZookeeperConfig::from_url(&url.0, cluster, environment)
                .map(ZookeeperJournal::new)
                .map(JournalConfig::Zookeeper)
                .map_err(wrong),
        }
    }
}

fn wrong(detail: impl fmt::Display) -> ConfigError {
    ConfigError::new("journal", detail.to_string())
}

/// Where the state lives.
#[derive(Clone, Debug)]
pub enum JournalConfig {
    /// In the data directory.
    Embedded,
    /// On etcd.
    Etcd(EtcdJournal),
    /// On PostgreSQL.
    Postgres(PostgresJournal),
    /// On Redis: for efficiency locks.
    Redis(RedisJournal),
    /// On ZooKeeper.
    Zookeeper(ZookeeperJournal),
}

impl JournalConfig {
    /// Reads a URL, with what the environment says of passwords.
    ///
    /// # Errors
    /// It names no journal of this build, or one that cannot be used; never quotes a secret.
    pub fn from_url(url: &str, cluster: &str) -> Result<Self, ConfigError> {
        RawJournal::from_url(url)?.resolve(cluster, |name| std::env::var(name).ok())
    }

    /// Whether it is beyond this machine's data directory.
    pub const fn is_remote(&self) -> bool {
        !matches!(self, Self::Embedded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str) -> Result<JournalConfig, ConfigError> {
        RawJournal::from_url(url)?.resolve("main", |_| None)
    }

    #[test]
    fn a_url_names_the_kind() {
        assert!(matches!(resolved("embedded"), Ok(JournalConfig::Embedded)));
        assert!(matches!(resolved("postgres://u@localhost/d"), Ok(JournalConfig::Postgres(_))));
        assert!(matches!(resolved("postgresql://u@localhost/d"), Ok(JournalConfig::Postgres(_))));
        assert!(matches!(resolved("redis://localhost"), Ok(JournalConfig::Redis(_))));
        assert!(matches!(resolved("zookeeper://localhost"), Ok(JournalConfig::Zookeeper(_))));
        assert!(matches!(resolved("etcd://localhost,localhost:2"), Ok(JournalConfig::Etcd(_))));
    }

    #[test]
    fn a_secret_is_never_shown() {
        for url in
            ["postgres://u:s3cret@localhost/d", "redis://u:s3cret@localhost", "etcd://u:s3cret@localhost"]
        {
            let raw = RawJournal::from_url(url).unwrap();
            let meant = raw.clone().resolve("main", |_| None).unwrap();
            assert!(!format!("{raw:?} {meant:?}").contains("s3cret"), "{raw:?} {meant:?}");
        }
        for url in ["s3cret", "floppy://u:s3cret@a", "postgres://u:s3cret@h:port/d", "etcd://u:s3cret@h/x"] {
            let error = resolved(url).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_cluster_is_checked() {
        let raw = RawJournal::from_url("etcd://localhost").unwrap();
        let error = raw.resolve("Main Street", |_| None).unwrap_err();
        assert!(error.detail.contains("cluster"), "{error}");
    }
}
