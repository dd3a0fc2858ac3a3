//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use tokio_postgres::{Client, NoTls};

pub(crate) fn config(url: &str) -> PostgresConfig {
    PostgresConfig::from_url(url, "main", |_| None).unwrap()
}

pub(crate) fn journal(url: &str) -> PostgresJournal {
    PostgresJournal::new(config(url)).unwrap()
}

/// A connection of the test's own.
pub(crate) async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
