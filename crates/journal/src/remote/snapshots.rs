//! The snapshot writer of every remote engine: in which order and under which checks a snapshot is stored is the same
//! everywhere (J8, J13); where its parts lie is the engine's affair.

use std::fmt::Display;

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_types::{Slot, ids};

use super::damaged_slot;
use super::record::{Pointer, decode_number, decode_slot, decode_tail};
use crate::{Hash, Limits, Outcome, ReadError, SnapshotHasher, SnapshotInfo, SnapshotWriter, Tail};

/// Where an engine keeps the parts of a snapshot.
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// A connection. One is held while a snapshot is being stored, and not longer: that happens once in a while.
    type Link: Send + Sync;
    /// Why the engine did not do what it was asked: nobody knows whether it has.
    type Trouble: Display + Send;

    /// Connects.
    async fn connect(&self) -> Result<Self::Link, Self::Trouble>;

    /// Connects after the last connection did not answer; to somebody else, where there is a choice.
    async fn reconnect(&self) -> Result<Self::Link, Self::Trouble> {
        self.connect().await
    }

    /// What a snapshot at this slot has to agree with.
    async fn around(&self, link: &Self::Link, slot: Slot) -> Result<Around, Self::Trouble>;

    /// Stores the next chunk, if the epoch is still ours; whether it was.
    async fn store(&self, link: &Self::Link, draft: &Draft, chunk: Bytes) -> Result<bool, Self::Trouble>;

    /// Switches the pointer and advances the low-water mark with it, fenced (J8, J13). The same switch again changes
    /// nothing and is committed.
    async fn switch(&self, link: &Self::Link, draft: &Draft, low: u64) -> Result<Outcome, Self::Trouble>;

    /// Removes what nobody reads any more: slots below the durable mark, which nobody can move back, so without a
    /// fence; and the chunks of older snapshots. What fails here is done after the next snapshot.
    async fn clean_up(&self, link: &Self::Link, draft: &Draft, low: u64) -> Result<(), Self::Trouble>;
}

/// The record around the slot of a snapshot, when it was begun.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Around {
    /// The chain's end.
    pub tail: Tail,
    /// The low-water mark.
    pub low: u64,
    /// The slot of the current snapshot; 0 if there is none.
    pub current: Slot,
    /// The hash at the slot, if the slot is there.
    pub hash: Option<Hash>,
    /// The bytes of the pointer, where an engine compares them. Only we can have changed it since.
    pub pointer: Option<Bytes>,
}

impl Around {
    /// As a key-value engine keeps it, under the keys of tail, low-water mark, pointer and `slot`.
    pub fn of_values(slot: Slot, [tail, low, pointer, there]: [Option<&Bytes>; 4]) -> Self {
        let current = pointer.and_then(|bytes| Pointer::decode(bytes)).map(|pointer| pointer.info.at.slot);
        Self {
            tail: tail.and_then(|bytes| decode_tail(bytes)).unwrap_or_default(),
            low: low.and_then(|bytes| decode_number(bytes)).unwrap_or(0),
            current: current.unwrap_or(Slot(0)),
            hash: there.and_then(|bytes| decode_slot(slot, bytes)).map(|found| found.hash()),
            pointer: pointer.cloned(),
        }
    }

    /// Whether a snapshot may be made at this tail.
    fn check(&self, at: Tail) -> Result<(), ReadError> {
        let Self { tail, current, .. } = self;
        if at.slot > tail.slot || at.slot < *current {
            let detail = format!("a snapshot must be between slot {current} and {}", tail.slot);
            return Err(damaged_slot(at.slot, &detail));
        }
        let known = if at.slot == tail.slot { Some(tail.hash) } else { self.hash };
        if known.is_some_and(|hash| hash != at.hash) {
            return Err(damaged_slot(at.slot, "the chain has another hash there"));
        }
        Ok(())
    }
}

/// A snapshot whose chunks are being stored.
pub struct Draft {
    /// The state right after this tail.
    pub at: Tail,
    /// Random: two snapshots of one slot by one epoch must not share chunks.
    pub id: [u8; 16],
    /// So many chunks are stored; the number of the next one.
    pub chunks: u32,
    /// The record when this was begun.
    pub before: Around,
    hasher: SnapshotHasher,
}

impl Draft {
    fn new(at: Tail, before: Around) -> Self {
        Self { at, id: ids::random(), chunks: 0, before, hasher: SnapshotHasher::default() }
    }

    /// What makes it current, once every chunk is stored.
    pub fn pointer(&self) -> Pointer {
        let info = SnapshotInfo { at: self.at, chunks: self.chunks, hash: self.hasher.finish() };
        Pointer { id: self.id, info }
    }

    /// The low-water mark that keeps everything from a slot on: never back, and never past the snapshot (J8).
    fn low(&self, keep_from: Slot) -> u64 {
        self.before.low.max(keep_from.0.saturating_sub(1).min(self.at.slot.0))
    }
}

/// Stores snapshots on a remote engine, beside the writer.
pub struct RemoteSnapshots<S: SnapshotStore> {
    store: S,
    unfinished: Option<(S::Link, Draft)>,
}

impl<S: SnapshotStore> RemoteSnapshots<S> {
    /// Of this engine.
    pub const fn new(store: S) -> Self {
        Self { store, unfinished: None }
    }
}

fn unavailable(trouble: impl Display) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

#[async_trait]
impl<S: SnapshotStore> SnapshotWriter for RemoteSnapshots<S> {
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError> {
        self.unfinished = None;
        let link = self.store.connect().await.map_err(unavailable)?;
        let around = self.store.around(&link, at.slot).await.map_err(unavailable)?;
        around.check(at)?;
        self.unfinished = Some((link, Draft::new(at, around)));
        Ok(())
    }

    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError> {
        Limits::REMOTE.admit(&bytes)?;
        let (link, draft) = self.unfinished.as_mut().ok_or_else(|| unavailable("no snapshot was begun"))?;
        if !self.store.store(link, draft, bytes.clone()).await.map_err(unavailable)? {
            return Err(unavailable("a newer epoch has the journal"));
        }
        draft.hasher.update(&bytes);
        draft.chunks += 1;
        Ok(())
    }

    /// May be called again after an unknown outcome: the same switch again changes nothing.
    async fn install(&mut self, keep_from: Slot) -> Outcome {
        let Some((link, draft)) = self.unfinished.take() else {
            return Outcome::Conflict(None);
        };
        let low = draft.low(keep_from);
        match self.store.switch(&link, &draft, low).await {
            Ok(Outcome::Committed) => {
                if let Err(trouble) = self.store.clean_up(&link, &draft, low).await {
                    tracing::warn!(%trouble, "old slots are removed with the next snapshot");
                }
                Outcome::Committed
            }
            Ok(refused) => refused,
            Err(trouble) => {
                let why = trouble.to_string();
                self.unfinished = self.store.reconnect().await.ok().map(|link| (link, draft));
                Outcome::Unknown(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Around {
        let tail = Tail { slot: Slot(9), hash: Hash([9; 32]) };
        Around { tail, low: 2, current: Slot(4), hash: Some(Hash([5; 32])), pointer: None }
    }

    #[test]
    fn a_snapshot_goes_neither_back_nor_past_the_tail_nor_beside_the_chain() {
        let at = |slot, byte| Tail { slot: Slot(slot), hash: Hash([byte; 32]) };
        assert_eq!(around().check(at(9, 9)), Ok(()));
        assert_eq!(around().check(at(5, 5)), Ok(()));
        for wrong in [at(10, 9), at(3, 5), at(5, 6), at(9, 8)] {
            assert!(around().check(wrong).is_err(), "{wrong:?}");
        }
        let compacted = Around { hash: None, ..around() };
        assert_eq!(compacted.check(at(5, 6)), Ok(()), "a slot that is gone cannot speak against it");
    }

    #[test]
    fn the_mark_goes_neither_back_nor_past_the_snapshot() {
        let draft = Draft::new(Tail { slot: Slot(5), hash: Hash([5; 32]) }, around());
        assert_eq!([0, 1, 3, 4, 6, 100].map(|keep_from| draft.low(Slot(keep_from))), [2, 2, 2, 3, 5, 5]);
    }
}
