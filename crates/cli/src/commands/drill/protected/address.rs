//! Where the protected thing is, as people write it.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// What `--fence` may begin with.
const SCHEMES: &str = "postgres://, mysql://, mariadb://, redis://, etcd://, s3://, dynamodb://, http://, storage://, sqlite: or the path of an SQLite file";

/// An address by its kind; each keeps the whole URL, as its driver wants it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Address {
    /// Whatever the user's own program writes.
    Program,
    /// A file, by its path.
    Sqlite(String),
    Postgres(String),
    Mariadb(String),
    Redis(String),
    /// `http://HOST:PORT`.
    Etcd(String),
    /// A service behind a fence.
    Http(String),
    /// A bucket.
    S3(Cloud),
    /// A table of DynamoDB.
    Dynamodb(Cloud),
    /// `leasehold fence storage`, as `http://HOST:PORT`.
    Storage(String),
}

/// Something of a cloud: `s3://NAME?endpoint=URL&region=REGION`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Cloud {
    /// The bucket or table.
    pub(super) name: String,
    /// Where it is, when it is not in the cloud.
    pub(super) endpoint: Option<String>,
    /// Where it is, when it is.
    pub(super) region: Option<String>,
}

impl Cloud {
    fn parse(rest: &str) -> Option<Self> {
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        let name = name.trim_end_matches('/');
        let mut cloud = Self { name: name.to_owned(), endpoint: None, region: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("endpoint", url) => cloud.endpoint = Some(url.to_owned()),
                ("region", region) => cloud.region = Some(region.to_owned()),
                _ => return None,
            }
        }
        (!name.is_empty() && !name.contains(['/', '@'])).then_some(cloud)
    }

    fn through(&self, network: SocketAddr) -> Self {
        Self { endpoint: Some(format!("http://{network}")), ..self.clone() }
    }

    /// Host and port of a plain endpoint: nothing can be held in between of another.
    fn host(&self) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?.strip_prefix("http://")?;
        let host = endpoint.trim_end_matches('/');
        Some(if host.contains(':') { host.to_owned() } else { format!("{host}:80") })
    }
}

impl Address {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`] for what is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Usage(format!("--fence: `{}` {why}", without_secret(text)));
        let Some((scheme, rest)) = text.split_once("://") else {
            let path = text.strip_prefix("sqlite:").unwrap_or(text);
            let known = !path.is_empty() && !path.contains(':');
            return if known {
                Ok(Self::Sqlite(path.into()))
            } else {
                Err(wrong(&format!("is none of {SCHEMES}")))
            };
        };
        let address = match scheme {
            "sqlite" if !rest.is_empty() => return Ok(Self::Sqlite(rest.into())),
            "postgres" | "postgresql" => Self::Postgres(text.into()),
            "mysql" | "mariadb" => Self::Mariadb(format!("mysql://{rest}")),
            "redis" => Self::Redis(text.into()),
            "etcd" => Self::Etcd(format!("http://{rest}")),
            "http" => Self::Http(text.into()),
            "s3" | "dynamodb" => {
                let wrong =
                    || wrong(&format!("is not of the form {scheme}://NAME?endpoint=URL&region=REGION"));
                let kind = if scheme == "s3" { Self::S3 } else { Self::Dynamodb };
                return Cloud::parse(rest).map(kind).ok_or_else(wrong);
            }
            "storage" => Self::Storage(format!("http://{rest}")),
            _ => return Err(wrong(&format!("is none of {SCHEMES}"))),
        };
        match address.host() {
            Some(host)
                if host
                    .rsplit_once(':')
                    .is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok()) =>
            {
                Ok(address)
            }
            _ => Err(wrong("does not name a host")),
        }
    }

    /// Whether a write on its way there can be held: what is encrypted goes to its own host alone.
    pub(crate) fn can_be_held(&self) -> bool {
        !matches!(self, Self::S3(cloud) | Self::Dynamodb(cloud) if cloud.host().is_none())
    }

    /// Host and port, of whatever is reached over a plain network.
    pub(crate) fn host(&self) -> Option<String> {
        let (url, port) = match self {
            Self::Program | Self::Sqlite(_) => return None,
            Self::S3(cloud) | Self::Dynamodb(cloud) => return cloud.host(),
            Self::Postgres(url) => (url, 5432),
            Self::Mariadb(url) => (url, 3306),
            Self::Redis(url) => (url, 6379),
            Self::Etcd(url) => (url, 2379),
            Self::Http(url) => (url, 80),
            Self::Storage(url) => (url, 7422),
        };
        let authority = authority(url)?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        Some(if has_port { host.to_owned() } else { format!("{host}:{port}") })
    }

    /// The same, reached at another address.
    pub(super) fn through(&self, network: SocketAddr) -> Self {
        let moved = |url: &String| replace_host(url, &network.to_string());
        match self {
            Self::Program | Self::Sqlite(_) => self.clone(),
            Self::S3(cloud) => Self::S3(cloud.through(network)),
            Self::Dynamodb(cloud) => Self::Dynamodb(cloud.through(network)),
            Self::Postgres(url) => Self::Postgres(moved(url)),
            Self::Mariadb(url) => Self::Mariadb(moved(url)),
            Self::Redis(url) => Self::Redis(moved(url)),
            Self::Etcd(url) => Self::Etcd(moved(url)),
            Self::Http(url) => Self::Http(moved(url)),
            Self::Storage(url) => Self::Storage(moved(url)),
        }
    }

    /// What the drill makes there for itself.
    pub(super) fn own_kind(&self) -> Option<&'static str> {
        match self {
            Self::Sqlite(_) | Self::Postgres(_) | Self::Mariadb(_) => Some("table"),
            Self::Redis(_) | Self::Etcd(_) => Some("key"),
            Self::Program | Self::Http(_) => None,
            Self::S3(_) => Some("object"),
            Self::Dynamodb(_) => Some("item"),
            Self::Storage(_) => Some("file"),
        }
    }

    /// Whether it has tables, one of which may be the user's.
    pub(crate) fn has_tables(&self) -> bool {
        self.own_kind() == Some("table")
    }

    /// The word for its kind in reports.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::Mariadb(_) => "mariadb",
            Self::Redis(_) => "redis",
            Self::Etcd(_) => "etcd",
            Self::Http(_) => "http",
            Self::S3(_) => "s3",
            Self::Dynamodb(_) => "dynamodb",
            Self::Storage(_) => "storage",
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host().unwrap_or_default();
        match self {
            Self::Program => f.write_str("your own program"),
            Self::Sqlite(path) => write!(f, "SQLite in {path}"),
            Self::Postgres(_) => write!(f, "PostgreSQL at {host}"),
            Self::Mariadb(_) => write!(f, "MariaDB at {host}"),
            Self::Redis(_) => write!(f, "Redis at {host}"),
            Self::Etcd(_) => write!(f, "etcd at {host}"),
            Self::S3(cloud) => write!(f, "the bucket {}", cloud.name),
            Self::Dynamodb(cloud) => write!(f, "the DynamoDB table {}", cloud.name),
            Self::Storage(_) => write!(f, "the storage at {host}"),
            Self::Http(url) => write!(f, "the service at {}", without_secret(url)),
        }
    }
}

fn authority(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split(['/', '?']).next()
}

fn replace_host(url: &str, host: &str) -> String {
    let Some(old) = authority(url) else { return url.to_owned() };
    let new = match old.rsplit_once('@') {
        Some((user, _)) => format!("{user}@{host}"),
        None => host.to_owned(),
    };
    url.replacen(old, &new, 1)
}

/// A URL that can be shown: without the password in it.
fn without_secret(url: &str) -> String {
    match authority(url).and_then(|authority| authority.rsplit_once('@')) {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            url.replacen(&format!("{user}@{host}"), &format!("{name}@{host}"), 1)
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_what_they_look_like() {
        let host = |text: &str| Address::parse(text).unwrap().host();
        assert_eq!(host("postgres://u:p%40x@db.example/app").as_deref(), Some("db.example:5432"));
        assert_eq!(host("redis://[::1]:7000/").as_deref(), Some("[::1]:7000"));
        assert_eq!(host("mariadb://root@h").as_deref(), Some("h:3306"));
        for path in ["books.db", "./a b.db", "sqlite:books.db", "sqlite:///tmp/books.db"] {
            assert!(matches!(Address::parse(path), Ok(Address::Sqlite(_))), "{path}");
        }
        for text in ["", "sqlite:", "ftp://x", "postgres://", "http://", "redis://:0/x", "mongodb:x"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn another_way_keeps_user_database_and_options() {
        let address = Address::parse("postgres://u:p@db:1/app?connect_timeout=3").unwrap();
        let moved = address.through(([127, 0, 0, 1], 9).into());
        assert_eq!(moved, Address::Postgres("postgres://u:p@127.0.0.1:9/app?connect_timeout=3".into()));
    }

    #[test]
    fn no_password_is_shown() {
        let address = Address::parse("postgres://u:secret@db/app").unwrap();
        assert!(!address.to_string().contains("secret"));
        let refused = Address::parse("ftp://u:secret@db/app").unwrap_err().to_string();
        assert!(!refused.contains("secret") && refused.contains("u@db"), "{refused}");
    }
}
