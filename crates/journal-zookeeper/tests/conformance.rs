//! The conformance suite on a private ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::time::Duration;

use leasehold_journal::conformance::{self, OnEngine};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use leasehold_testbed::zookeeper;

/// One call on a machine with other work: what takes longer is not what the suite is about.
const PATIENT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn zookeeper_keeps_the_contract() {
    let server = zookeeper();
    let url = format!("zookeeper://{}", server.url());
    let journal = |name: &str| {
        let config = ZookeeperConfig::from_url(&url, name, |_| None).unwrap();
        ZookeeperJournal::new(config.call_within(PATIENT))
    };
    conformance::run(&OnEngine::new(journal, 3)).await.assert_passed();
}
