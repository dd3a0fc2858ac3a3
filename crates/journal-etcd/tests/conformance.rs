//! The conformance suite on a private etcd, alone and as a cluster of three, and on another version.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::time::Duration;

use leasehold_journal::conformance::{self, OnEngine};
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::{Server, etcd_3_5, etcd_cluster};

/// One call on a machine with other work: what takes longer is not what the suite is about.
const PATIENT: Duration = Duration::from_secs(30);

async fn run(server: Server, histories: u64) {
    let hosts: Vec<_> = server.endpoints().iter().map(|url| url.trim_start_matches("http://")).collect();
    let url = format!("etcd://{}", hosts.join(","));
    let journal = |name: &str| {
        let config = EtcdConfig::from_url(&url, name, |_| None).unwrap();
        EtcdJournal::new(config.call_within(PATIENT)).unwrap()
    };
    conformance::run(&OnEngine::new(journal, histories)).await.assert_passed();
}

#[tokio::test]
async fn one_member_keeps_the_contract() {
    run(etcd_cluster(1), 4).await;
}

#[tokio::test]
async fn three_members_keep_the_contract() {
    run(etcd_cluster(3), 2).await;
}

#[tokio::test]
async fn version_3_5_keeps_the_contract() {
    run(etcd_3_5(), 2).await;
}
