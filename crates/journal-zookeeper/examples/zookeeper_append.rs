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

use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use leasehold_journal::{Batch, BatchId, Claim, Confirmation, Journal, Opened, Outcome, Tail, chain};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use leasehold_types::{ClusterId, Epoch, Nonce, ids};

/// Facts a batch, and bytes a fact: what 64 tasks that acquire and release make of one commit.
const FACTS: usize = 64;
const FACT_BYTES: usize = 96;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next();
    let seconds = args.next().map_or(5, |text| text.parse().unwrap());
    let server = url.is_none().then(leasehold_testbed::zookeeper);
    let url = url.or_else(|| server.as_ref().map(|server| format!("zookeeper://{}", server.url()))).unwrap();
    let config = ZookeeperConfig::from_url(&url, "bench", |name| std::env::var(name).ok()).unwrap();
    let claim = Claim {
        nonce: Nonce::from_bytes(ids::random()),
        new_cluster: ClusterId::from_bytes(ids::random()),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let began = now();
    let mut opened = ZookeeperJournal::new(config).open(claim).await.unwrap();
    println!("opened in {:?}, durability {}", began.elapsed(), opened.durability);
    for facts in [1, FACTS, 4 * FACTS] {
        append(&mut opened, facts, Duration::from_secs(seconds)).await;
    }
    confirm(&mut opened, Duration::from_secs(seconds)).await;
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

async fn append(opened: &mut Opened, facts: usize, within: Duration) {
    let body = Bytes::from(vec![0x5A; facts * FACT_BYTES]);
    let mut tail = opened.tail;
    let mut latencies = Histogram::<u64>::new(3).unwrap();
    let began = now();
    while began.elapsed() < within {
        let slot = tail.slot.next();
        let batch = Batch { slot, id: BatchId(slot.0.into()), prev_hash: tail.hash, body: body.clone() };
        let sent = now();
        assert_eq!(opened.writer.append(&batch).await, Outcome::Committed);
        latencies.record(u64::try_from(sent.elapsed().as_micros()).unwrap()).unwrap();
        tail = Tail { slot, hash: chain(&batch, opened.epoch) };
    }
    opened.tail = tail;
    report(&format!("append of {facts} facts"), &latencies, began.elapsed(), facts);
}

async fn confirm(opened: &mut Opened, within: Duration) {
    let mut latencies = Histogram::<u64>::new(3).unwrap();
    let began = now();
    while began.elapsed() < within {
        let sent = now();
        assert_eq!(opened.writer.confirm().await, Confirmation::Current);
        latencies.record(u64::try_from(sent.elapsed().as_micros()).unwrap()).unwrap();
    }
    report("confirm", &latencies, began.elapsed(), 1);
}

fn report(what: &str, latencies: &Histogram<u64>, took: Duration, each: usize) {
    let calls = latencies.len() as f64 / took.as_secs_f64();
    println!(
        "{what}: {calls:.0}/s, {:.0} facts/s, p50 {} us, p99 {} us, max {} us",
        calls * each as f64,
        latencies.value_at_quantile(0.5),
        latencies.value_at_quantile(0.99),
        latencies.max()
    );
}
