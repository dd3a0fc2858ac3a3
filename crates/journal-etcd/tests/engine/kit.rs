//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use std::time::Duration;

use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::Server;

/// One call on a machine with other work.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// The URL of all members.
pub(crate) fn url(server: &Server) -> String {
    let hosts: Vec<_> = server.endpoints().iter().map(|url| url.trim_start_matches("http://")).collect();
    format!("etcd://{}", hosts.join(","))
}

/// A journal of this name.
pub(crate) fn journal_of(url: &str, name: &str) -> EtcdJournal {
    let config = EtcdConfig::from_url(url, name, |_| None).unwrap();
    EtcdJournal::new(config.call_within(PATIENT)).unwrap()
}

/// A journal that waits for a slow engine.
pub(crate) fn journal(server: &Server) -> EtcdJournal {
    journal_of(&url(server), "main")
}

/// A journal that gives up as soon as that of a node does.
pub(crate) fn hasty(url: &str) -> EtcdJournal {
    EtcdJournal::new(EtcdConfig::from_url(url, "main", |_| None).unwrap()).unwrap()
}
