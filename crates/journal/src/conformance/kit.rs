//! What the checks share: a small node, seeded randomness, and how a check says what it saw.

use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

use super::{Fixture, Openers, Place};
use crate::{
    Batch, BatchId, Chained, Claim, Journal, OpenError, Opened, Outcome, ReadError, Reader, Slots, Tail,
};

/// What a check saw that it must not see.
pub(super) struct Seen(pub(super) String);

impl From<OpenError> for Seen {
    fn from(error: OpenError) -> Self {
        Self(format!("could not open: {error}"))
    }
}

impl From<ReadError> for Seen {
    fn from(error: ReadError) -> Self {
        Self(format!("could not read: {error}"))
    }
}

/// Ends the check unless this holds.
pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Seen> {
    if holds { Ok(()) } else { Err(Seen(otherwise())) }
}

/// Ends the check unless both are equal.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: &T, wanted: &T) -> Result<(), Seen> {
    ensure(seen == wanted, || format!("{what}: {}, expected {}", short(seen), short(wanted)))
}

/// Bodies can be a megabyte; a report must not be.
fn short(value: &impl std::fmt::Debug) -> String {
    let mut text = format!("{value:?}");
    if text.len() > 400 {
        text = text.chars().take(400).collect::<String>() + " ...";
    }
    text
}

/// A small generator (SplitMix64): the same seed gives the same history on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to, not including, `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Bytes {
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

pub(super) fn claim(number: u8) -> Claim {
    Claim {
        nonce: Nonce::from_bytes([number; 16]),
        new_cluster: ClusterId::from_bytes([100 + number; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

/// One claim, with what its owner believes of the chain's end.
pub(super) struct Node {
    pub(super) opened: Opened,
    pub(super) tail: Tail,
}

impl Node {
    pub(super) async fn open(journal: &dyn Journal, number: u8) -> Result<Self, Seen> {
        Self::open_with(journal, claim(number)).await
    }

    /// Opens as `recover` does.
    pub(super) async fn recover(journal: &dyn Journal, number: u8) -> Result<Self, Seen> {
        Self::open_with(journal, Claim { accept_loss: true, ..claim(number) }).await
    }

    async fn open_with(journal: &dyn Journal, claim: Claim) -> Result<Self, Seen> {
        let opened = journal.open(claim).await?;
        let tail = opened.tail;
        Ok(Self { opened, tail })
    }

    /// A batch for the next slot.
    pub(super) fn next_batch(&self, body: impl Into<Bytes>) -> Batch {
        batch_after(self.tail, body)
    }

    /// `batch` as this node appends it.
    pub(super) fn chained(&self, batch: Batch) -> Chained {
        Chained::new(batch, self.opened.epoch)
    }

    /// Appends this batch; what came of it.
    pub(super) async fn try_append(&mut self, batch: &Batch) -> Outcome {
        let chained = self.chained(batch.clone());
        self.opened.writer.append(&chained).await
    }

    /// Appends; anything but a commit ends the check.
    pub(super) async fn append(&mut self, body: impl Into<Bytes>) -> Result<Chained, Seen> {
        let batch = self.next_batch(body);
        let committed = self.chained(batch);
        same("append", &self.opened.writer.append(&committed).await, &Outcome::Committed)?;
        self.tail = committed.tail();
        Ok(committed)
    }

    pub(super) async fn append_many(&mut self, count: u64) -> Result<Vec<Chained>, Seen> {
        let mut all = Vec::new();
        for number in 0..count {
            all.push(self.append(format!("batch {number} of {count}")).await?);
        }
        Ok(all)
    }

    /// Stores a snapshot with these chunks; what came of the switch.
    pub(super) async fn snapshot(
        &mut self,
        at: Tail,
        chunks: &[&str],
        keep_from: Slot,
    ) -> Result<Outcome, Seen> {
        self.opened.snapshots.begin(at).await?;
        for chunk in chunks {
            self.opened.snapshots.chunk(Bytes::copy_from_slice(chunk.as_bytes())).await?;
        }
        Ok(self.opened.snapshots.install(keep_from).await)
    }

    /// Stores a snapshot; anything but a commit ends the check.
    pub(super) async fn install(&mut self, at: Tail, chunks: &[&str], keep_from: Slot) -> Result<(), Seen> {
        same("install", &self.snapshot(at, chunks, keep_from).await?, &Outcome::Committed)
    }
}

/// A batch after this tail, with an id that its slot and body give.
pub(super) fn batch_after(tail: Tail, body: impl Into<Bytes>) -> Batch {
    let body = body.into();
    let slot = tail.slot.next();
    let id = BatchId(u128::from(slot.0) << 64 | u128::from(crc(&body)));
    Batch { slot, id, prev_hash: tail.hash, body }
}

fn crc(body: &[u8]) -> u32 {
    let hash = blake3::hash(body);
    u32::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1], hash.as_bytes()[2], hash.as_bytes()[3]])
}

/// Takes the journal over from `older`. Gives the older node back, still believing in itself, where the journal allows
/// two at once.
pub(super) async fn take_over(
    fixture: &dyn Fixture,
    place: &dyn Place,
    older: Node,
    number: u8,
) -> Result<(Option<Node>, Node), Seen> {
    let older = match fixture.openers() {
        Openers::Many => Some(older),
        Openers::One => {
            drop(older);
            None
        }
    };
    Ok((older, Node::open(place.journal(), number).await?))
}

/// Reads everything from `from` on.
pub(super) async fn read_all(reader: &mut dyn Reader, from: Slot) -> Result<Vec<Chained>, Seen> {
    let mut all: Vec<Chained> = Vec::new();
    loop {
        let next = all.last().map_or(from, |last| last.slot.next());
        match reader.slots(next).await? {
            Slots::Found(found) if found.is_empty() => return Ok(all),
            Slots::Found(found) => all.extend(found),
            Slots::Compacted { oldest } => {
                return Err(Seen(format!("slot {next} is said to be compacted, oldest {oldest}")));
            }
        }
        ensure(all.len() < 1_000_000, || "reading never ends".to_owned())?;
    }
}
