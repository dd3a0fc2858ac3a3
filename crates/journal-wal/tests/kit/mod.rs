//! What the tests of the embedded journal share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use bytes::Bytes;
use leasehold_journal::{
    Batch, BatchId, Chained, Claim, Journal, OpenError, Opened, Outcome, Reader, Slots, Tail,
};
use leasehold_journal_wal::disk::MemoryDisk;
use leasehold_journal_wal::{Background, WalConfig, WalJournal};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

/// SplitMix64: the same seed gives the same run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Tiny segments, and everything on the calling thread.
pub(crate) fn tiny() -> WalConfig {
    WalConfig {
        segment_bytes: 12 << 9,
        first_segment_bytes: 8 << 9,
        reserve_bytes: 2 << 9,
        body_bytes: 1_900,
        background: Background::Inline,
        ..WalConfig::new("unused")
    }
}

pub(crate) fn journal(disk: &MemoryDisk, config: &WalConfig) -> WalJournal {
    WalJournal::on(Arc::new(disk.clone()), config.clone())
}

pub(crate) fn claim() -> Claim {
    Claim {
        nonce: Nonce::from_bytes([7; 16]),
        new_cluster: ClusterId::from_bytes([1; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

pub(crate) fn recovering() -> Claim {
    Claim { accept_loss: true, ..claim() }
}

/// Runs a future of the embedded journal, which never waits for anything.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the embedded journal never waits"),
    }
}

pub(crate) fn open(disk: &MemoryDisk, config: &WalConfig) -> Result<Opened, OpenError> {
    now(journal(disk, config).open(claim()))
}

pub(crate) fn batch(tail: Tail, body: Vec<u8>) -> Batch {
    let slot = tail.slot.next();
    Batch {
        slot,
        id: BatchId(u128::from(slot.0) * 1_000 + body.len() as u128),
        prev_hash: tail.hash,
        body: body.into(),
    }
}

/// Appends a body after `tail`.
pub(crate) fn append(opened: &mut Opened, tail: Tail, body: Vec<u8>) -> (Outcome, Chained) {
    let batch = Chained::new(batch(tail, body), opened.epoch);
    (now(opened.writer.append(&batch)), batch)
}

/// Appends `count` bodies of `len` bytes; each must be committed.
pub(crate) fn append_all(opened: &mut Opened, mut tail: Tail, count: u64, len: usize) -> Vec<Chained> {
    let mut all = Vec::new();
    for number in 0..count {
        let (outcome, committed) = append(opened, tail, vec![number.to_le_bytes()[0] ^ 0x55; len]);
        assert_eq!(outcome, Outcome::Committed);
        tail = committed.tail();
        all.push(committed);
    }
    all
}

pub(crate) fn install(opened: &mut Opened, at: Tail, chunks: &[&[u8]], keep_from: Slot) -> Outcome {
    if let Err(error) = now(opened.snapshots.begin(at)) {
        return Outcome::Unknown(error.to_string());
    }
    for chunk in chunks {
        if let Err(error) = now(opened.snapshots.chunk(Bytes::copy_from_slice(chunk))) {
            return Outcome::Unknown(error.to_string());
        }
    }
    now(opened.snapshots.install(keep_from))
}

/// Everything that can be read, from the oldest slot on.
pub(crate) fn read_all(reader: &mut dyn Reader) -> Vec<Chained> {
    let mut all: Vec<Chained> = Vec::new();
    let mut next = Slot(1);
    loop {
        match now(reader.slots(next)).unwrap() {
            Slots::Compacted { oldest } => next = oldest,
            Slots::Found(found) if found.is_empty() => return all,
            Slots::Found(found) => {
                next = found.last().unwrap().slot.next();
                all.extend(found);
            }
        }
    }
}

/// Whether exactly these slots can be read, from the oldest one still kept.
pub(crate) fn is_suffix(read: &[Chained], all: &[Chained]) -> bool {
    all.ends_with(read)
}
