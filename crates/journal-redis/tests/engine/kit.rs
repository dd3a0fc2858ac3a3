//! A small node over a private engine.

pub(crate) use leasehold_journal::conformance::{SmallNode as Node, fresh_claim as claim, read_all};

use leasehold_journal_redis::{RedisConfig, RedisJournal};

pub(crate) fn journal(url: &str) -> RedisJournal {
    RedisJournal::new(RedisConfig::from_url(url, "main", |_| None).unwrap())
}
