//! Where the engine is and how to reach it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_journal::remote;
use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// One attempt at one statement. Half of the time after which a node gives an unknown outcome up, so that there is a
/// second attempt on a new connection.
const STATEMENT_WITHIN: Duration = Duration::from_secs(1);

/// A connection that is not there by then is tried again later.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Everything needed to open a journal on PostgreSQL.
///
/// The URL is PostgreSQL's own, with several hosts if there are several:
/// `postgres://user@host1,host2/database?sslmode=verify-full&sslrootcert=/etc/leasehold/ca.pem`. Besides what the
/// driver knows it may have
///
/// - `sslmode`: `disable` or `verify-full`. Left out: `disable` on loopback addresses and sockets, else `verify-full`.
///   There is nothing between: TLS to somebody unknown protects nothing.
/// - `sslrootcert`: a file with the certificates to trust; left out: those of the system.
/// - `sslcert`, `sslkey`: files with our own certificate and its key, where the server asks for one.
/// - `password_file`: a file with the password, for one that shall not be in a URL.
#[derive(Clone)]
pub struct PostgresConfig {
    /// The same for each host of the URL: each begins with another one and goes on with those after it. Never empty.
    pub(crate) drivers: Vec<tokio_postgres::Config>,
    pub(crate) name: String,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) statement_within: Duration,
}

/// The files of a TLS connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) roots: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// What is wrong with the configuration; never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub String);

impl PostgresConfig {
    /// Reads a URL. `name` tells the clusters in one database apart; `environment` looks a variable up.
    ///
    /// # Errors
    /// The URL, the name or a file that is named in the URL is not usable; the operator's to mend.
    pub fn from_url(
        url: &str,
        name: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidConfig> {
        remote::check_name(name).map_err(InvalidConfig)?;
        let (ours, url) = take_ours(url)?;
        let mut drivers = rotations(&url).iter().map(|url| parse(url)).collect::<Result<Vec<_>, _>>()?;
        let written = &drivers[0];
        let in_url = written.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let password = remote::password(in_url.as_deref(), ours.password_file.as_deref(), environment);
        let password = password.map_err(InvalidConfig)?;
        let tls = ours.tls(written)?;
        for driver in &mut drivers {
            if let Some(password) = &password {
                driver.password(password);
            }
            driver
                .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable })
                .target_session_attrs(TargetSessionAttrs::ReadWrite)
                .application_name(application_name(name))
                .connect_timeout(CONNECT_WITHIN)
                .tcp_user_timeout(CONNECT_WITHIN)
                .keepalives_idle(CONNECT_WITHIN);
        }
        Ok(Self { drivers, name: name.to_owned(), tls, statement_within: STATEMENT_WITHIN })
    }

    /// Sets how long one attempt at one statement may take before its outcome is called unknown.
    #[must_use]
    pub fn statement_within(mut self, limit: Duration) -> Self {
        self.statement_within = limit;
        self
    }

    /// The name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, without user, password or parameters.
    pub(crate) fn place(&self) -> String {
        let written = &self.drivers[0];
        let ports = written.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied();
        let hosts = written.get_hosts().iter().enumerate().map(|(index, host)| match (host, port(index)) {
            (Host::Tcp(name), Some(port)) => format!("{name}:{port}"),
            (Host::Tcp(name), None) => name.clone(),
            (Host::Unix(path), _) => path.display().to_string(),
        });
        let (hosts, database) =
            (hosts.collect::<Vec<_>>().join(","), written.get_dbname().unwrap_or_default());
        format!("postgres://{hosts}/{database} (cluster {})", self.name)
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("hosts", &self.drivers[0].get_hosts())
            .field("name", &self.name)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// What connections of this cluster call themselves, so that a claim can tell them from others.
pub(crate) fn application_name(name: &str) -> String {
    format!("leasehold/{name}")
}

fn parse(url: &str) -> Result<tokio_postgres::Config, InvalidConfig> {
    // The driver's message is not passed on: it may quote the URL, password and all.
    let driver: tokio_postgres::Config = url.parse().map_err(|_| InvalidConfig(what_is_wrong(url)))?;
    if driver.get_hosts().is_empty() && driver.get_hostaddrs().is_empty() {
        return Err(InvalidConfig("the URL names no host".to_owned()));
    }
    Ok(driver)
}

/// The URL once for each of its hosts, beginning with another one each time. Found as the driver finds them: after the
/// first `@`. Hosts that are parameters stay as they are.
fn rotations(url: &str) -> Vec<String> {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let begin = url[scheme..].find('@').map_or(scheme, |at| scheme + at + 1);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let mut hosts: Vec<&str> = url[begin..end].split(',').collect();
    let rotated = |_| {
        let rotated = format!("{}{}{}", &url[..begin], hosts.join(","), &url[end..]);
        hosts.rotate_left(1);
        rotated
    };
    (0..url[begin..end].split(',').count()).map(rotated).collect()
}

/// The parameters of the URL that the driver does not know.
#[derive(Default)]
struct Ours {
    sslmode: Option<String>,
    files: TlsFiles,
    password_file: Option<PathBuf>,
}

/// Splits a URL into our parameters and what the driver reads.
fn take_ours(url: &str) -> Result<(Ours, String), InvalidConfig> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut ours, mut rest) = (Ours::default(), Vec::new());
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| InvalidConfig(format!("`{key}` is not UTF-8")))?.into_owned();
        match key {
            "sslmode" => ours.sslmode = Some(value),
            "sslrootcert" => ours.files.roots = Some(value.into()),
            "sslcert" => ours.files.certificate = Some(value.into()),
            "sslkey" => ours.files.key = Some(value.into()),
            "password_file" => ours.password_file = Some(value.into()),
            _ => rest.push(parameter),
        }
    }
    let rest = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    Ok((ours, rest))
}

/// Says which parameter the driver does not take, if it is one. A query with an `@` is part of a password with a `?` in it,
/// and not shown.
fn what_is_wrong(url: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query).filter(|query| !query.contains('@'));
    let is_wrong = |parameter: &&str| {
        format!("postgres://localhost?{parameter}").parse::<tokio_postgres::Config>().is_err()
    };
    match query.and_then(|query| query.split('&').find(is_wrong)) {
        Some(wrong) => {
            let key = wrong.split('=').next().unwrap_or_default();
            format!("`{key}` is not a parameter of a PostgreSQL URL, or has a value that it cannot have")
        }
        None => "not a PostgreSQL URL".to_owned(),
    }
}

impl Ours {
    fn tls(self, driver: &tokio_postgres::Config) -> Result<Option<TlsFiles>, InvalidConfig> {
        let asked = match self.sslmode.as_deref() {
            None => !driver.get_hosts().iter().all(is_local),
            Some("disable") => false,
            Some("verify-full") => true,
            Some(other) => {
                let message = format!("`sslmode={other}`: use `verify-full` or `disable`");
                return Err(InvalidConfig(message));
            }
        };
        if !asked && self.files != TlsFiles::default() {
            return Err(InvalidConfig(
                "certificates are given, but no TLS: add `sslmode=verify-full`".into(),
            ));
        }
        if self.files.certificate.is_some() != self.files.key.is_some() {
            return Err(InvalidConfig("`sslcert` and `sslkey` belong together".to_owned()));
        }
        Ok(asked.then_some(self.files))
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<PostgresConfig, InvalidConfig> {
        PostgresConfig::from_url(url, "main", |_| None)
    }

    #[test]
    fn tls_is_the_default_except_on_this_machine() {
        assert!(read("postgres://u@db.example.net/d").unwrap().tls.is_some());
        assert!(read("postgres://u@127.0.0.1,db.example.net/d").unwrap().tls.is_some());
        assert!(read("postgres://u@127.0.0.1/d").unwrap().tls.is_none());
        assert!(read("postgres://u@db.example.net/d?sslmode=disable").unwrap().tls.is_none());
        let files = read("postgres://u@[::1]/d?sslmode=verify-full&sslrootcert=/a%20b").unwrap().tls.unwrap();
        assert_eq!(files.roots, Some("/a b".into()));
    }

    #[test]
    fn each_host_comes_first_once() {
        let config = read("postgres://u:a,b@[::1]:1,127.0.0.1,localhost:3/d?sslmode=disable").unwrap();
        let ports: Vec<_> = config.drivers.iter().map(|driver| driver.get_ports().to_vec()).collect();
        assert_eq!(ports, [[1, 5432, 3], [5432, 3, 1], [3, 1, 5432]]);
        assert!(config.drivers.iter().all(|driver| driver.get_password() == Some(b"a,b")));
        assert_eq!(read("postgres://localhost").unwrap().drivers.len(), 1);
        assert_eq!(read("postgres:///d?host=localhost,127.0.0.1").unwrap().drivers.len(), 1);
    }

    #[test]
    fn half_measures_are_refused() {
        for query in ["sslmode=prefer", "sslmode=require", "sslmode=verify-full&sslcert=/c", "sslrootcert=/r"]
        {
            assert!(read(&format!("postgres://u@localhost/d?{query}")).is_err(), "{query}");
        }
    }

    #[test]
    fn a_password_comes_from_url_file_or_environment_and_is_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "from-file\n").unwrap();
        let with_file = format!("postgres://u@localhost/d?password_file={}", file.display());
        let from_environment =
            |name: &str| (name == remote::PASSWORD_VARIABLE).then(|| "from-env".to_owned());
        let cases = [
            ("postgres://u:from-url@localhost/d", "from-url"),
            (&with_file, "from-file"),
            ("postgres://u@localhost/d", "from-env"),
        ];
        for (url, wanted) in cases {
            let config = PostgresConfig::from_url(url, "main", from_environment).unwrap();
            assert_eq!(config.drivers[0].get_password(), Some(wanted.as_bytes()));
            assert!(!format!("{config:?}").contains(wanted));
        }
        let bad = read("postgres://u:s3cret@host:notaport/d").unwrap_err();
        assert!(!bad.to_string().contains("s3cret"));
    }
}
