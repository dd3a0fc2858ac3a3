//! Measures one writer: append latency and facts a second, and what a confirmation costs.
//!
//! ```console
//! cargo run --release -p leasehold-journal-redis --example redis_append [URL] [SECONDS]
//! ```
//!
//! Without a URL it starts a private Redis that syncs every write.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal; a failure is its end"
)]

use std::time::Duration;

use leasehold_journal::conformance::measure;
use leasehold_journal_redis::{RedisConfig, RedisJournal};

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next();
    let server = url.is_none().then(leasehold_testbed::redis);
    let url = url.or_else(|| server.as_ref().map(|server| server.url().to_owned())).unwrap();
    let seconds = args.next().map_or(5, |text| text.parse().unwrap());
    let config = RedisConfig::from_url(&url, "bench", |name| std::env::var(name).ok()).unwrap();
    let journal = RedisJournal::new(config);
    for row in measure(&journal, Duration::from_secs(seconds)).await {
        println!("{row}");
    }
}
