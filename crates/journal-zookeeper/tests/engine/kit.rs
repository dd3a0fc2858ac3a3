//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim};

use std::time::Duration;

use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};

/// One call on a machine with other work.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// A journal that waits for a slow engine.
pub(crate) fn journal(url: &str) -> ZookeeperJournal {
    ZookeeperJournal::new(ZookeeperConfig::from_url(url, "main", |_| None).unwrap().call_within(PATIENT))
}

/// A journal that gives up as soon as that of a node does.
pub(crate) fn hasty(url: &str) -> ZookeeperJournal {
    ZookeeperJournal::new(ZookeeperConfig::from_url(url, "main", |_| None).unwrap())
}
