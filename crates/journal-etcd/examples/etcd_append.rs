//! Measures one writer: append latency and facts a second, and what a confirmation costs.
//!
//! ```console
//! cargo run --release -p leasehold-journal-etcd --example etcd_append [URL] [SECONDS]
//! ```
//!
//! Without a URL it starts a private etcd; `3` as the URL starts a cluster of three.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal; a failure is its end"
)]

use std::time::Duration;

use leasehold_journal::conformance::measure;
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let given = args.next().unwrap_or_else(|| "1".to_owned());
    let server = given.parse().ok().map(leasehold_testbed::etcd_cluster);
    let hosts = |endpoints: &[String]| endpoints.join(",").replace("http://", "");
    let url = server.as_ref().map_or(given, |server| format!("etcd://{}", hosts(server.endpoints())));
    let seconds = args.next().map_or(5, |text| text.parse().unwrap());
    let config = EtcdConfig::from_url(&url, "bench", |name| std::env::var(name).ok()).unwrap();
    let journal = EtcdJournal::new(config).unwrap();
    for row in measure(&journal, Duration::from_secs(seconds)).await {
        println!("{row}");
    }
}
