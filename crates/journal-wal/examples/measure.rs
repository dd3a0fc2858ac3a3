//! Measures the embedded journal on a directory: `cargo run --release -p leasehold-journal-wal --example measure DIR`.
//!
//! Appends batches of 1 and of 64 facts of about 120 bytes and tells the latencies; then times opening a journal with a
//! log the size of 200,000 grants.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold_journal::{Batch, BatchId, Chained, Claim, Journal, Opened, Outcome, Slots, Tail};
use leasehold_journal_wal::{WalConfig, WalJournal};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

const FACT_BYTES: usize = 120;

#[expect(clippy::disallowed_methods, reason = "measuring is the purpose")]
fn clock() -> Instant {
    Instant::now()
}

fn claim() -> Claim {
    Claim {
        nonce: Nonce::from_bytes(ids::random()),
        new_cluster: ClusterId::from_bytes(ids::random()),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

async fn append(opened: &mut Opened, tail: &mut Tail, facts: usize) -> Duration {
    let slot = tail.slot.next();
    let body = vec![slot.0.to_le_bytes()[0] | 1; facts * FACT_BYTES].into();
    let batch = Batch { slot, id: BatchId(u128::from(slot.0)), prev_hash: tail.hash, body };
    let batch = Chained::new(batch, opened.epoch);
    let start = clock();
    let outcome = opened.writer.append(&batch).await;
    let took = start.elapsed();
    assert_eq!(outcome, Outcome::Committed);
    *tail = batch.tail();
    took
}

fn tell(what: &str, mut times: Vec<Duration>) {
    if times.is_empty() {
        return;
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    let (p50, p99, p999, most) = (at(0.5), at(0.99), at(0.999), at(1.0));
    println!("{what}: p50 {p50} us, p99 {p99} us, p99.9 {p999} us, most {most} us ({} appends)", times.len());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let dir = tempfile::tempdir_in(dir).expect("the directory can be written");
    let journal = WalJournal::new(WalConfig::new(dir.path().join("journal")));

    let start = clock();
    let mut opened = journal.open(claim()).await.expect("a new journal opens");
    println!("founding: {:?}", start.elapsed());
    let mut tail = opened.tail;
    let spare = dir.path().join("journal/spare");
    for (facts, appends) in [(1, 30_000), (64, 20_000)] {
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        for _ in 0..appends {
            let times = if spare.exists() { &mut quiet } else { &mut busy };
            times.push(append(&mut opened, &mut tail, facts).await);
        }
        tell(&format!("append of {facts} facts"), quiet);
        tell(&format!("append of {facts} facts while a segment is being prepared"), busy);
    }
    drop(opened);

    let dir = tempfile::tempdir_in(dir.path()).expect("the directory can be written");
    let journal = WalJournal::new(WalConfig::new(dir.path().join("journal")));
    let mut opened = journal.open(claim()).await.expect("a new journal opens");
    let mut tail = opened.tail;
    for _ in 0..200_000 / 64 {
        append(&mut opened, &mut tail, 64).await;
    }
    drop(opened);
    let start = clock();
    let mut opened = journal.open(claim()).await.expect("the journal opens again");
    let opening = start.elapsed();
    let (mut from, mut bytes) = (Slot(1), 0);
    while let Ok(Slots::Found(found)) = opened.reader.slots(from).await {
        let Some(last) = found.last() else { break };
        from = last.slot.next();
        bytes += found.iter().map(|committed| committed.body.len()).sum::<usize>();
    }
    println!(
        "opening with {} MB of log: {opening:?}; then reading all: {:?}",
        bytes >> 20,
        start.elapsed() - opening
    );
}
