//! A small node over a journal, for tests of one engine: it claims, appends, and remembers what it may believe.

use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

use crate::{Batch, BatchId, Claim, Committed, Journal, Opened, Outcome, Reader, Slots, Tail, chain};

/// Attempts after which an unknown outcome counts as one for ever.
const ATTEMPTS: usize = 20;

/// One claim and what its owner believes of the tail.
#[derive(Debug)]
pub struct SmallNode {
    /// What the claim gave.
    pub opened: Opened,
    /// The tail, as far as its outcomes tell.
    pub tail: Tail,
}

/// A claim of anybody's journal, with a fresh nonce.
pub fn fresh_claim() -> Claim {
    Claim {
        nonce: Nonce::from_bytes(ids::random()),
        new_cluster: ClusterId::from_bytes([7; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

impl SmallNode {
    /// Claims the journal.
    ///
    /// # Panics
    /// It cannot be claimed.
    pub async fn open(journal: &dyn Journal) -> Self {
        let opened = journal.open(fresh_claim()).await.expect("the journal can be claimed");
        let tail = opened.tail;
        Self { opened, tail }
    }

    /// The batch for the next slot.
    pub fn batch(&self, body: impl Into<Bytes>) -> Batch {
        let slot = self.tail.slot.next();
        Batch { slot, id: BatchId(slot.0.into()), prev_hash: self.tail.hash, body: body.into() }
    }

    /// Appends once, and believes it if it is committed.
    pub async fn append(&mut self, batch: &Batch) -> Outcome {
        let outcome = self.opened.writer.append(batch).await;
        if outcome == Outcome::Committed {
            self.tail = Tail { slot: batch.slot, hash: chain(batch, self.opened.epoch) };
        }
        outcome
    }

    /// Appends the same batch until its outcome is known (J3).
    ///
    /// # Panics
    /// It stays unknown.
    pub async fn resolve(&mut self, batch: &Batch) -> Outcome {
        for _ in 0..ATTEMPTS {
            match self.append(batch).await {
                Outcome::Unknown(_) => {}
                outcome => return outcome,
            }
        }
        panic!("unknown after {ATTEMPTS} attempts");
    }

    /// Appends what must be committed at once.
    ///
    /// # Panics
    /// It is not.
    pub async fn commit(&mut self, body: impl Into<Bytes>) {
        let batch = self.batch(body);
        assert_eq!(self.append(&batch).await, Outcome::Committed);
    }
}

/// Every slot from the first on.
///
/// # Panics
/// They cannot be read, or were compacted.
pub async fn read_all(reader: &mut dyn Reader) -> Vec<Committed> {
    match reader.slots(Slot(1)).await.expect("the journal can be read") {
        Slots::Found(found) => found,
        other => panic!("{other:?}"),
    }
}
