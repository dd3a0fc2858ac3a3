//! Where the engine is and how to reach it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold_journal::remote;
use leasehold_journal::remote::tls::ClientConfig;
use percent_encoding::percent_decode_str;

use crate::tunnel::TlsFiles;

/// One attempt at one call. Half of the time after which a node gives an unknown outcome up, so that there is a second
/// attempt in a new session.
const CALL_WITHIN: Duration = Duration::from_secs(1);

/// Everything needed to open a journal on ZooKeeper.
///
/// The URL lists the servers: `zookeeper://user@host1:2181,host2:2181,host3:2181`. With a user every node is made for
/// that user alone (scheme `digest`); without one, for everybody. It may have
///
/// - `password_file`: a file with the password.
/// - `tls_ca`: a file with the certificates to trust. With it connections are encrypted, and the certificate and name of
///   the server are checked; without it they are not encrypted.
/// - `tls_cert`, `tls_key`: files with our own certificate and its key, where the servers ask for one.
#[derive(Clone)]
pub struct ZookeeperConfig {
    pub(crate) hosts: String,
    pub(crate) name: String,
    pub(crate) user: Option<(String, String)>,
    pub(crate) call_within: Duration,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// What is wrong with the configuration; never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub String);

impl ZookeeperConfig {
    /// Reads a URL. `name` tells the clusters on one ZooKeeper apart; `environment` looks a variable up.
    ///
    /// # Errors
    /// The URL, the name or a file that is named in the URL is not usable; the operator's to mend.
    pub fn from_url(
        url: &str,
        name: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidConfig> {
        remote::check_name(name).map_err(InvalidConfig)?;
        let wrong = |text: &str| InvalidConfig(text.to_owned());
        let rest = url.strip_prefix("zookeeper://").ok_or_else(|| wrong("not a `zookeeper://` URL"))?;
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Parameters { password_file, tls } = Parameters::read(query)?;
        let authority = authority.trim_end_matches('/');
        let (user, hosts) =
            authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        if hosts.is_empty() || hosts.contains('/') {
            return Err(wrong("the URL names no servers as `host:port`"));
        }
        let user = match user {
            Some(user) => Some(credentials(user, password_file, environment)?),
            None => None,
        };
        let (hosts, name, tls) = (hosts.to_owned(), name.to_owned(), tls.read()?);
        Ok(Self { hosts, name, user, call_within: CALL_WITHIN, tls })
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
        format!("zookeeper://{} (cluster {})", self.hosts, self.name)
    }
}

impl fmt::Debug for ZookeeperConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZookeeperConfig")
            .field("hosts", &self.hosts)
            .field("name", &self.name)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// The parameters of a URL.
#[derive(Default)]
struct Parameters {
    password_file: Option<PathBuf>,
    tls: TlsFiles,
}

impl Parameters {
    fn read(query: &str) -> Result<Self, InvalidConfig> {
        let mut parameters = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let place = match key {
                "password_file" => &mut parameters.password_file,
                "tls_ca" => &mut parameters.tls.ca,
                "tls_cert" => &mut parameters.tls.cert,
                "tls_key" => &mut parameters.tls.key,
                other => {
                    return Err(InvalidConfig(format!("`{other}` is not a parameter of a ZooKeeper URL")));
                }
            };
            *place = Some(decoded(value)?.into());
        }
        Ok(parameters)
    }
}

fn credentials(
    user: &str,
    password_file: Option<PathBuf>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(String, String), InvalidConfig> {
    let (user, in_url) = user.split_once(':').map_or((user, None), |(user, password)| (user, Some(password)));
    let in_url = in_url.map(decoded).transpose()?;
    let password = remote::password(in_url.as_deref(), password_file.as_deref(), environment);
    let password = password.map_err(InvalidConfig)?;
    let password = password.ok_or_else(|| InvalidConfig(format!("no password for the user `{user}`")))?;
    Ok((decoded(user)?, password))
}

fn decoded(value: &str) -> Result<String, InvalidConfig> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| InvalidConfig("the URL is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_its_secret_never_shown() {
        let config = ZookeeperConfig::from_url("zookeeper://u:s3cret@a:1,b:2/", "main", |_| None).unwrap();
        assert_eq!(config.hosts, "a:1,b:2");
        assert_eq!(config.user, Some(("u".to_owned(), "s3cret".to_owned())));
        assert!(!format!("{config:?}").contains("s3cret"));
        assert_eq!(config.place(), "zookeeper://a:1,b:2 (cluster main)");
        let wrong = ["a:1", "zookeeper://", "zookeeper://a/b", "zookeeper://a?x=y", "zookeeper://u@a"];
        for wrong in wrong.into_iter().chain(["zookeeper://a?tls_cert=c", "zookeeper://a?tls_ca=/no/such"]) {
            assert!(ZookeeperConfig::from_url(wrong, "main", |_| None).is_err(), "{wrong}");
        }
    }
}
