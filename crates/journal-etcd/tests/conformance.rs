//! The conformance suite on a private etcd, alone and as a cluster of three, and on another version.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_journal::Journal;
use leasehold_journal::conformance::{self, Fixture, Openers, Place};
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::{Server, etcd_3_5, etcd_cluster};

/// One engine; each place is a cluster of another name on it.
struct Etcd {
    server: Arc<Server>,
    histories: u64,
    next: AtomicU32,
}

struct Named {
    journal: EtcdJournal,
    _server: Arc<Server>,
}

impl Place for Named {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}

fn url(server: &Server) -> String {
    let hosts: Vec<_> = server.endpoints().iter().map(|url| url.trim_start_matches("http://")).collect();
    format!("etcd://{}", hosts.join(","))
}

#[async_trait::async_trait]
impl Fixture for Etcd {
    fn openers(&self) -> Openers {
        Openers::Many
    }

    async fn place(&self) -> Box<dyn Place> {
        let name = format!("place-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let config = EtcdConfig::from_url(&url(&self.server), &name, |_| None).unwrap();
        Box::new(Named { journal: EtcdJournal::new(config).unwrap(), _server: Arc::clone(&self.server) })
    }

    fn histories(&self) -> u64 {
        self.histories
    }
}

async fn run(server: Server, histories: u64) {
    let server = Arc::new(server);
    conformance::run(&Etcd { server, histories, next: AtomicU32::new(0) }).await.assert_passed();
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
