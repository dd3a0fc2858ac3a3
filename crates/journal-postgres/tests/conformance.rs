//! The conformance suite on a private PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_journal::Journal;
use leasehold_journal::conformance::{self, Fixture, Openers, Place};
use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_testbed::{Server, Setup, postgres_with};

/// One engine; each place is a cluster of another name in the same database.
struct Postgres {
    server: Arc<Server>,
    next: AtomicU32,
}

struct Named {
    journal: PostgresJournal,
    _server: Arc<Server>,
}

impl Place for Named {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}

#[async_trait::async_trait]
impl Fixture for Postgres {
    fn openers(&self) -> Openers {
        Openers::Many
    }

    async fn place(&self) -> Box<dyn Place> {
        let name = format!("place-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let config = PostgresConfig::from_url(self.server.url(), &name, |_| None).unwrap();
        let journal = PostgresJournal::new(config).unwrap();
        Box::new(Named { journal, _server: Arc::clone(&self.server) })
    }

    fn histories(&self) -> u64 {
        8
    }
}

#[tokio::test]
async fn postgres_keeps_the_contract() {
    // Durability is not what the suite can show.
    let server = Arc::new(postgres_with(&Setup::default().without_fsync()));
    conformance::run(&Postgres { server, next: AtomicU32::new(0) }).await.assert_passed();
}
