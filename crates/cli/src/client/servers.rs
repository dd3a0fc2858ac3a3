//! The addresses of servers.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use leasehold::Security;

use crate::failure::Failure;

/// Where `leasehold serve` listens when nothing else is said.
const DEFAULT: &str = "http://127.0.0.1:7420";

/// One server: `http://HOST:PORT` or `https://HOST:PORT`, and how to prove who one is there.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    is_secure: bool,
    host: String,
    port: u16,
    security: Arc<Security>,
}

impl Server {
    /// A server on this machine.
    pub(crate) fn local(port: u16) -> Self {
        Self { is_secure: false, host: "127.0.0.1".into(), port, security: Arc::default() }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::Usage(format!(
                "--server: `{text}` is not of the form http://HOST:PORT or https://HOST:PORT"
            ))
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme @ ("http" | "https")), Some(authority), "" | "/", None) =
            (uri.scheme_str(), uri.authority(), uri.path(), uri.query())
        else {
            return Err(wrong());
        };
        let (is_secure, host) = (scheme == "https", authority.host());
        let port = match authority.as_str().strip_prefix(host) {
            Some("") if is_secure => 443,
            Some("") => 80,
            Some(port) => port.trim_start_matches(':').parse().map_err(|_| wrong())?,
            // A name and a password before the host.
            None => return Err(wrong()),
        };
        Ok(Self { is_secure, host: host.trim_matches(['[', ']']).to_owned(), port, security: Arc::default() })
    }

    /// Whether it is spoken to over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whom to trust there, and as whom to come.
    pub(crate) fn security(&self) -> &Security {
        &self.security
    }

    /// The `Authorization` header.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, Failure> {
        let wrong = |error: &dyn fmt::Display| Failure::Usage(format!("--credential-file: {error}"));
        let Some(credential) = self.security.read_credential().map_err(|error| wrong(&error))? else {
            return Ok(None);
        };
        if credential.is_empty() {
            return Err(wrong(&"there is nothing in it"));
        }
        let mut value =
            HeaderValue::try_from(format!("Bearer {credential}")).map_err(|error| wrong(&error))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Where to connect.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The `Host` header.
    pub(crate) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_secure { "https" } else { "http" }, self.authority())
    }
}

/// At least one server, in the order in which they are tried.
#[derive(Clone, Debug)]
pub(crate) struct Servers(Vec<Server>);

impl Servers {
    /// Reads what was typed, or else the environment, or else takes the server that `serve` starts by default.
    pub(crate) fn new(typed: &[String], environment: Option<String>) -> Result<Self, Failure> {
        let written = match (typed, &environment) {
            ([], Some(list)) => std::slice::from_ref(list),
            ([], None) => &[DEFAULT.to_owned()],
            (typed, _) => typed,
        };
        let single = written.iter().flat_map(|list| list.split(','));
        single.map(|text| Server::parse(text.trim())).collect::<Result<_, _>>().map(Self)
    }

    /// The same, spoken to like this.
    pub(crate) fn with(self, security: Security) -> Self {
        let security = Arc::new(security);
        Self(self.0.into_iter().map(|server| Server { security: Arc::clone(&security), ..server }).collect())
    }

    /// This one alone.
    pub(crate) fn only(server: Server) -> Self {
        Self(vec![server])
    }

    /// The first of them.
    pub(crate) fn first(&self) -> &Server {
        &self.0[0]
    }

    /// That none of them is there. The Rust client says in `error` which one it tried last; where all are named, that
    /// would be said twice.
    pub(crate) fn unreachable(&self, error: &str) -> Failure {
        let cause = self.iter().find_map(|server| error.strip_prefix(server.to_string().as_str()));
        let cause = cause.unwrap_or(error).trim_start_matches([':', ' ']);
        Failure::Unreachable { tried: self.to_string(), error: cause.to_owned() }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.iter()
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Server::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_before_the_environment_and_that_before_the_default() {
        let shown = |typed: &[&str], environment: Option<&str>| {
            let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
            Servers::new(&typed, environment.map(str::to_owned)).unwrap().to_string()
        };
        assert_eq!(shown(&[], None), DEFAULT);
        assert_eq!(shown(&[], Some("http://a:1, http://b:2")), "http://a:1, http://b:2");
        assert_eq!(shown(&["http://c:3"], Some("http://a:1")), "http://c:3");
        assert_eq!(
            shown(&["http://c:3,http://d:4", "http://e:5"], None),
            "http://c:3, http://d:4, http://e:5"
        );
    }

    #[test]
    fn an_address_is_said_once_when_nobody_is_there() {
        let servers = Servers::new(&["http://a:1,http://b:2".to_owned()], None).unwrap();
        for error in ["http://b:2: Connection refused", "Connection refused"] {
            let said = servers.unreachable(error).to_string();
            assert!(said.starts_with("no server at http://a:1, http://b:2: Connection refused;"), "{said}");
        }
        let said = servers.unreachable("http://a:1 does not answer").to_string();
        assert!(said.starts_with("no server at http://a:1, http://b:2: does not answer;"), "{said}");
    }

    #[test]
    fn a_server_is_a_plain_address() {
        let parse = |text: &str| Server::parse(text).map(|server| server.to_string()).ok();
        assert_eq!(parse("http://127.0.0.1:7420"), Some("http://127.0.0.1:7420".into()));
        assert_eq!(parse("http://[::1]:7420/"), Some("http://[::1]:7420".into()));
        assert_eq!(parse("http://locks"), Some("http://locks:80".into()));
        assert_eq!(parse("https://locks:1"), Some("https://locks:1".into()));
        assert_eq!(parse("https://locks"), Some("https://locks:443".into()));
        let no_port =
            ["http://locks:", "http://locks:99999", "http://locks:http", "http://ann:s3cret@locks:1"];
        for text in no_port {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["", "locks", "ftp://locks:1", "http://locks/path", "http://locks/?q", "http://"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
