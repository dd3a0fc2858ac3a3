//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use std::time::Duration;

use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_testbed::{Server, Setup, postgres_with};
use tokio_postgres::{Client, NoTls};

/// One statement on a machine with other work.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// An engine for a test that is not about durability.
pub(crate) fn engine() -> Server {
    postgres_with(&Setup::default().without_fsync())
}

/// A journal of this name.
pub(crate) fn journal_of(url: &str, name: &str) -> PostgresJournal {
    let config = PostgresConfig::from_url(url, name, |_| None).unwrap();
    PostgresJournal::new(config.statement_within(PATIENT)).unwrap()
}

/// A journal that waits for a slow engine.
pub(crate) fn journal(url: &str) -> PostgresJournal {
    journal_of(url, "main")
}

/// A journal that gives up as soon as that of a node does.
pub(crate) fn hasty(url: &str) -> PostgresJournal {
    PostgresJournal::new(PostgresConfig::from_url(url, "main", |_| None).unwrap()).unwrap()
}

/// A connection of the test's own.
pub(crate) async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
