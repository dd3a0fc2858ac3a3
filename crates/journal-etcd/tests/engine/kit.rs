//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::Server;

/// The URL of all members.
pub(crate) fn url(server: &Server) -> String {
    let hosts: Vec<_> = server.endpoints().iter().map(|url| url.trim_start_matches("http://")).collect();
    format!("etcd://{}", hosts.join(","))
}

pub(crate) fn journal_at(url: &str) -> EtcdJournal {
    EtcdJournal::new(EtcdConfig::from_url(url, "main", |_| None).unwrap()).unwrap()
}

pub(crate) fn journal(server: &Server) -> EtcdJournal {
    journal_at(&url(server))
}
