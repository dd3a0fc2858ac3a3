//! The conformance suite on a private PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::time::Duration;

use leasehold_journal::conformance::{self, OnEngine};
use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_testbed::{Setup, postgres_with};

/// One statement on a machine with other work: what takes longer is not what the suite is about.
const PATIENT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn postgres_keeps_the_contract() {
    // Durability is not what the suite can show.
    let server = postgres_with(&Setup::default().without_fsync());
    let journal = |name: &str| {
        let config = PostgresConfig::from_url(server.url(), name, |_| None).unwrap();
        PostgresJournal::new(config.statement_within(PATIENT)).unwrap()
    };
    conformance::run(&OnEngine::new(journal, 8)).await.assert_passed();
}
