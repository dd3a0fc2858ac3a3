//! The conformance suite on a private ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_journal::Journal;
use leasehold_journal::conformance::{self, Fixture, Openers, Place};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use leasehold_testbed::{Server, zookeeper};

/// One engine; each place is a cluster of another name on it.
struct Zookeeper {
    server: Arc<Server>,
    histories: u64,
    next: AtomicU32,
}

struct Named {
    journal: ZookeeperJournal,
    _server: Arc<Server>,
}

impl Place for Named {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}

#[async_trait::async_trait]
impl Fixture for Zookeeper {
    fn openers(&self) -> Openers {
        Openers::Many
    }

    async fn place(&self) -> Box<dyn Place> {
        let name = format!("place-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let config =
            ZookeeperConfig::from_url(&format!("zookeeper://{}", self.server.url()), &name, |_| None)
                .unwrap();
        Box::new(Named { journal: ZookeeperJournal::new(config), _server: Arc::clone(&self.server) })
    }

    fn histories(&self) -> u64 {
        self.histories
    }
}

#[tokio::test]
async fn zookeeper_keeps_the_contract() {
    let server = Arc::new(zookeeper());
    conformance::run(&Zookeeper { server, histories: 3, next: AtomicU32::new(0) }).await.assert_passed();
}
