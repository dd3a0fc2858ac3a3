//! Where the engine is and how to reach it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_journal::remote;
use redis::{ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

/// One attempt at one call. Half of the time after which a node gives an unknown outcome up, so that there is a second
/// attempt on a new connection.
const CALL_WITHIN: Duration = Duration::from_secs(1);

/// Everything needed to open a journal on Redis.
///
/// The URL is Redis's own: `redis://user@host:6379/0`, or `rediss://` for TLS. It may have
///
/// - `password_file`: a file with the password.
/// - `tls_ca`: a file with the certificates to trust; left out: those of the system.
/// - `tls_cert`, `tls_key`: files with our own certificate and its key, where the server asks for one.
#[derive(Clone)]
pub struct RedisConfig {
    pub(crate) client: redis::Client,
    pub(crate) name: String,
    pub(crate) call_within: Duration,
}

/// What is wrong with the configuration; never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub String);

/// The parameters of a URL.
#[derive(Default)]
struct Parameters {
    password_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl RedisConfig {
    /// Reads a URL. `name` tells the clusters on one Redis apart; `environment` looks a variable up.
    ///
    /// # Errors
    /// The URL, the name or a file that is named in the URL is not usable; the operator's to mend.
    pub fn from_url(
        url: &str,
        name: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidConfig> {
        remote::check_name(name).map_err(InvalidConfig)?;
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let parameters = Parameters::read(query)?;
        // The driver's message is not passed on: it may quote the URL, password and all.
        let wrong = |_| InvalidConfig("not a Redis URL: redis://[user@]host[:port][/database]".to_owned());
        let info = base.into_connection_info().map_err(wrong)?;
        // Without its name the driver needs one permission less.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let password =
            remote::password(settings.password(), parameters.password_file.as_deref(), environment);
        let info = match password.map_err(InvalidConfig)? {
            Some(password) => info.set_redis_settings(settings.set_password(password)),
            // The driver would leave the user out without a word.
            None if settings.username().is_some() => {
                let user = settings.username().unwrap_or_default();
                return Err(InvalidConfig(format!("no password for the user `{user}`")));
            }
            None => info.set_redis_settings(settings),
        };
        let client = parameters.client(info)?;
        Ok(Self { client, name: name.to_owned(), call_within: CALL_WITHIN })
    }

    /// Sets how long one attempt at one call may take before its outcome is called unknown.
    #[must_use]
    pub fn call_within(mut self, limit: Duration) -> Self {
        self.call_within = limit;
        self
    }

    /// The name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, without user, password or parameters.
    pub(crate) fn place(&self) -> String {
        let info = self.client.get_connection_info();
        format!("redis://{}/{} (cluster {})", info.addr(), info.redis_settings().db(), self.name)
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("address", &self.client.get_connection_info().addr().to_string())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Parameters {
    fn read(query: &str) -> Result<Self, InvalidConfig> {
        let mut parameters = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let place = match key {
                "password_file" => &mut parameters.password_file,
                "tls_ca" => &mut parameters.ca,
                "tls_cert" => &mut parameters.cert,
                "tls_key" => &mut parameters.key,
                other => return Err(InvalidConfig(format!("`{other}` is not a parameter of a Redis URL"))),
            };
            *place = Some(value.into());
        }
        Ok(parameters)
    }

    fn client(&self, info: ConnectionInfo) -> Result<redis::Client, InvalidConfig> {
        let wrong = |error: redis::RedisError| InvalidConfig(error.to_string());
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            if self.ca.is_some() || self.cert.is_some() || self.key.is_some() {
                return Err(InvalidConfig("certificates are given, but no TLS: use `rediss://`".to_owned()));
            }
            return redis::Client::open(info).map_err(wrong);
        }
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? })
            }
            (None, None) => None,
            _ => return Err(InvalidConfig("`tls_cert` and `tls_key` belong together".to_owned())),
        };
        let root_cert = self.ca.as_deref().map(read).transpose()?;
        redis::Client::build_with_tls(info, TlsCertificates { client_tls, root_cert }).map_err(wrong)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, InvalidConfig> {
    std::fs::read(file).map_err(|error| InvalidConfig(format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_its_secret_never_shown() {
        let config = RedisConfig::from_url("redis://user:s3cret@localhost:7000/1", "main", |_| None).unwrap();
        assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
        assert_eq!(config.place(), "redis://localhost:7000/1 (cluster main)");
        let from_environment =
            RedisConfig::from_url("redis://localhost", "main", |_| Some("s3cret".into())).unwrap();
        let info = from_environment.client.get_connection_info();
        assert_eq!(info.redis_settings().password(), Some("s3cret"));
        for wrong in [
            "http://localhost",
            "redis://localhost?colour=blue",
            "redis://localhost?tls_ca=/ca",
            "redis://u@localhost",
        ] {
            assert!(RedisConfig::from_url(wrong, "main", |_| None).is_err(), "{wrong}");
        }
    }
}
