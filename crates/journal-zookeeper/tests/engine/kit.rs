//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};

pub(crate) fn journal(url: &str) -> ZookeeperJournal {
    ZookeeperJournal::new(ZookeeperConfig::from_url(url, "main", |_| None).unwrap())
}
