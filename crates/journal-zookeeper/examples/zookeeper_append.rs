//! Measures one writer: append latency and facts a second, and what a confirmation costs.
//!
//! ```console
//! cargo run --release -p leasehold-journal-zookeeper --example zookeeper_append [URL] [SECONDS]
//! ```
//!
//! Without a URL it starts a private ZooKeeper.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal; a failure is its end"
)]

use std::time::Duration;

use leasehold_journal::conformance::measure;
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next();
    let server = url.is_none().then(leasehold_testbed::zookeeper);
    let url = url.or_else(|| server.as_ref().map(|server| format!("zookeeper://{}", server.url()))).unwrap();
    let seconds = args.next().map_or(5, |text| text.parse().unwrap());
    let config = ZookeeperConfig::from_url(&url, "bench", |name| std::env::var(name).ok()).unwrap();
    let journal = ZookeeperJournal::new(config);
    for row in measure(&journal, Duration::from_secs(seconds)).await {
        println!("{row}");
    }
}
