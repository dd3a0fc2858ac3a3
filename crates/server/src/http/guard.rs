//! Keeps web pages out of an open server: a browser sends `Host` and `Origin` truthfully, so a page of another origin,
//! or one that rebinds its own name to this address, is told apart from a client of ours.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};
use leasehold_api::{ErrorCode, Problem};

use super::convert::bad_field;
use crate::config::HostPolicy;

/// Checks who is meant and where the request comes from.
pub(crate) fn check(policy: &HostPolicy, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), uri.authority()) {
        (Some(host), _) => host.to_str().map_err(|_| bad_field("Host", "is not a host name"))?,
        // HTTP/2 has the authority in its place.
        (None, Some(authority)) => authority.as_str(),
        (None, None) => return Err(bad_field("Host", "is missing")),
    };
    if hosts.next().is_some() {
        return Err(bad_field("Host", "is there more than once"));
    }
    check_host(policy, host)?;
    if let Some(authority) = uri.authority() {
        check_host(policy, authority.as_str())?;
    }
    match headers.get(ORIGIN) {
        None => Ok(()),
        Some(origin) if is_own(origin.as_bytes(), host) => Ok(()),
        Some(_) => Err(forbidden("requests from pages of another origin are refused")),
    }
}

fn check_host(policy: &HostPolicy, host: &str) -> Result<(), Problem> {
    match policy {
        HostPolicy::Any => Ok(()),
        HostPolicy::LoopbackAnd(others) => {
            let name = without_port(host);
            let listed = || others.iter().any(|other| other.eq_ignore_ascii_case(name));
            if is_loopback(name) || listed() {
                return Ok(());
            }
            Err(forbidden("Host is neither a loopback name nor listed in allowed_hosts"))
        }
    }
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(ErrorCode::Forbidden, detail)
}

/// The host without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_own(origin: &[u8], host: &str) -> bool {
    let rest = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(policy: &HostPolicy, host: &str, origin: Option<&str>) -> Result<(), Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check(policy, &Uri::from_static("/v1/status"), &headers)
    }

    #[test]
    fn loopback_names_and_listed_ones_are_ours() {
        let policy = HostPolicy::LoopbackAnd(vec!["locks.test".into()]);
        for host in [
            "localhost",
            "LOCALHOST:7420",
            "127.0.0.1:7420",
            "127.9.9.9",
            "[::1]:7420",
            "[::1]",
            "locks.test:1",
        ] {
            assert!(ask(&policy, host, None).is_ok(), "{host}");
        }
        for host in ["evil.test", "localhost.evil.test:7420", "10.0.0.1", "", "[::2]", "127.0.0.1.evil.test"]
        {
            assert!(ask(&policy, host, None).is_err(), "{host}");
        }
    }

    #[test]
    fn only_pages_of_the_server_itself_get_through() {
        let policy = HostPolicy::LoopbackAnd(Vec::new());
        assert!(ask(&policy, "localhost:7420", Some("http://localhost:7420")).is_ok());
        for origin in ["http://evil.test", "null", "http://localhost:7421", "http://localhost:7420.evil.test"]
        {
            assert!(ask(&policy, "localhost:7420", Some(origin)).is_err(), "{origin}");
        }
    }
}
