//! The conformance suite on a private Redis.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::time::Duration;

use leasehold_journal::conformance::{self, OnEngine};
use leasehold_journal_redis::{RedisConfig, RedisJournal};
use leasehold_testbed::redis;

/// One call on a machine with other work: what takes longer is not what the suite is about.
const PATIENT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn redis_keeps_the_contract_while_it_lives() {
    let server = redis();
    let journal = |name: &str| {
        let config = RedisConfig::from_url(server.url(), name, |_| None).unwrap();
        RedisJournal::new(config.call_within(PATIENT))
    };
    conformance::run(&OnEngine::new(journal, 8)).await.assert_passed();
}
