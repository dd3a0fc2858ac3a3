//! Where the engine is and how to reach it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_journal::remote;
use percent_encoding::percent_decode_str;

/// One attempt at one call. Half of the time after which a node gives an unknown outcome up, so that there is a second
/// attempt at another member.
const CALL_WITHIN: Duration = Duration::from_secs(1);

/// Everything needed to open a journal on etcd.
///
/// The URL lists the members: `etcd://user@host1:2379,host2:2379,host3:2379?tls_ca=/etc/leasehold/ca.pem`. It may have
///
/// - `tls`: `on` or `off`. Left out: `off` when all members are on loopback addresses, else `on`. The certificate of the
///   member is always checked.
/// - `tls_ca`: a file with the certificates to trust. Needed with TLS: members of etcd rarely have public ones.
/// - `tls_cert`, `tls_key`: files with our own certificate and its key, where members ask for one.
/// - `password_file`: a file with the password of the user.
/// - `compact`: `on` to compact etcd's history ourselves after each snapshot. Only for an etcd that nobody else uses:
///   the history is everybody's.
#[derive(Clone)]
pub struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) name: String,
    pub(crate) user: Option<(String, String)>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) compact: bool,
    pub(crate) call_within: Duration,
}

/// The files of a TLS connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// What is wrong with the configuration; never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub String);

/// The parameters of a URL.
#[derive(Default)]
struct Parameters {
    tls: Option<bool>,
    files: TlsFiles,
    password_file: Option<PathBuf>,
    compact: bool,
}

impl EtcdConfig {
    /// Reads a URL. `name` tells the clusters on one etcd apart; `environment` looks a variable up.
    ///
    /// # Errors
    /// The URL, the name or a file that is named in the URL is not usable; the operator's to mend.
    pub fn from_url(
        url: &str,
        name: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidConfig> {
        remote::check_name(name).map_err(InvalidConfig)?;
        let rest =
            url.strip_prefix("etcd://").ok_or_else(|| InvalidConfig("not an `etcd://` URL".to_owned()))?;
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = Parameters::read(query)?;
        let (user, hosts) = match authority.trim_end_matches('/').rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority.trim_end_matches('/')),
        };
        let hosts: Vec<&str> = hosts.split(',').filter(|host| !host.is_empty()).collect();
        if hosts.is_empty() || hosts.iter().any(|host| host.contains('/')) {
            return Err(InvalidConfig("the URL names no members as `host:port`".to_owned()));
        }
        let user = user.map(|user| credentials(user, &parameters, environment)).transpose()?;
        let tls = parameters.tls.unwrap_or_else(|| !hosts.iter().all(|host| is_local(host)));
        let scheme = if tls { "https" } else { "http" };
        Ok(Self {
            endpoints: hosts.iter().map(|host| format!("{scheme}://{}", with_port(host))).collect(),
            name: name.to_owned(),
            user,
            compact: parameters.compact,
            tls: parameters.files(tls)?,
            call_within: CALL_WITHIN,
        })
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
        let members = self.endpoints.iter().map(|url| url.rsplit("://").next().unwrap_or_default());
        format!("etcd://{} (cluster {})", members.collect::<Vec<_>>().join(","), self.name)
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("endpoints", &self.endpoints)
            .field("name", &self.name)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl Parameters {
    fn read(query: &str) -> Result<Self, InvalidConfig> {
        let mut parameters = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(key, value)?;
            match key {
                "tls" => parameters.tls = Some(switch(key, &value)?),
                "tls_ca" => parameters.files.ca = Some(value.into()),
                "tls_cert" => parameters.files.cert = Some(value.into()),
                "tls_key" => parameters.files.key = Some(value.into()),
                "password_file" => parameters.password_file = Some(value.into()),
                "compact" => parameters.compact = switch(key, &value)?,
                other => return Err(InvalidConfig(format!("`{other}` is not a parameter of an etcd URL"))),
            }
        }
        Ok(parameters)
    }

    fn files(self, tls: bool) -> Result<Option<TlsFiles>, InvalidConfig> {
        let wrong = |text: &str| Err(InvalidConfig(text.to_owned()));
        match (tls, &self.files) {
            (false, files) if *files == TlsFiles::default() => Ok(None),
            (false, _) => wrong("certificates are given, but no TLS: add `tls=on`"),
            (true, TlsFiles { ca: None, .. }) => wrong("TLS needs `tls_ca`; or say `tls=off`"),
            (true, TlsFiles { cert, key, .. }) if cert.is_some() != key.is_some() => {
                wrong("`tls_cert` and `tls_key` belong together")
            }
            (true, _) => Ok(Some(self.files)),
        }
    }
}

fn credentials(
    user: &str,
    parameters: &Parameters,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(String, String), InvalidConfig> {
    let (user, in_url) = user.split_once(':').map_or((user, None), |(user, password)| (user, Some(password)));
    let in_url = in_url.map(|password| decoded("password", password)).transpose()?;
    let password = remote::password(in_url.as_deref(), parameters.password_file.as_deref(), environment);
    let password = password.map_err(InvalidConfig)?;
    let password = password.ok_or_else(|| InvalidConfig(format!("no password for the user `{user}`")))?;
    Ok((decoded("user", user)?, password))
}

fn decoded(key: &str, value: &str) -> Result<String, InvalidConfig> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| InvalidConfig(format!("`{key}` is not UTF-8")))
}

fn switch(key: &str, value: &str) -> Result<bool, InvalidConfig> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(InvalidConfig(format!("`{key}` is `on` or `off`"))),
    }
}

/// The host without its port.
fn host_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    }
}

fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port && !host.ends_with(']') { host.to_owned() } else { format!("{host}:2379") }
}

fn is_local(host: &str) -> bool {
    let name = host_of(host);
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<EtcdConfig, InvalidConfig> {
        EtcdConfig::from_url(url, "main", |_| None)
    }

    #[test]
    fn members_are_listed_with_or_without_ports() {
        let config = read("etcd://127.0.0.1:1,localhost,[::1]:3/").unwrap();
        assert_eq!(config.endpoints, ["http://127.0.0.1:1", "http://localhost:2379", "http://[::1]:3"]);
        for wrong in ["http://127.0.0.1:1", "etcd://", "etcd://a/b", "etcd://localhost?colour=blue"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tls_is_the_default_except_on_this_machine() {
        assert!(read("etcd://etcd.example.net").is_err_and(|error| error.0.contains("tls_ca")));
        assert_eq!(
            read("etcd://etcd.example.net?tls_ca=/ca").unwrap().endpoints[0],
            "https://etcd.example.net:2379"
        );
        assert!(read("etcd://etcd.example.net?tls=off").unwrap().tls.is_none());
        for wrong in ["tls_ca=/ca", "tls=on&tls_ca=/ca&tls_key=/key", "tls=yes"] {
            assert!(read(&format!("etcd://127.0.0.1?{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_found_and_never_shown() {
        let config = read("etcd://user:s3cret@localhost").unwrap();
        assert_eq!(config.user, Some(("user".to_owned(), "s3cret".to_owned())));
        assert!(!format!("{config:?}").contains("s3cret"));
        assert!(read("etcd://user@localhost").is_err());
    }
}
