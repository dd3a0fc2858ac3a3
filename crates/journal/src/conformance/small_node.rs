//! A small node over a journal, for tests of one engine: it claims, appends, and remembers what it may believe.

use std::time::Duration;

use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

use crate::{
    Batch, BatchId, Chained, Claim, Confirmation, Journal, OpenError, Opened, Outcome, Reader, Slots, Tail,
};

/// After that an engine is away for ever: much longer than one that is alive takes on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts.
const BREATH: Duration = Duration::from_millis(20);

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
    /// Claims the journal, as soon as its engine answers.
    ///
    /// # Panics
    /// It cannot be claimed.
    pub async fn open(journal: &dyn Journal) -> Self {
        let claimed = insist(async || match journal.open(fresh_claim()).await {
            Err(OpenError::Unavailable(why)) => Err(why),
            known => Ok(known),
        });
        let opened = claimed.await.expect("the journal can be claimed");
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
        let chained = Chained::new(batch.clone(), self.opened.epoch);
        let outcome = self.opened.writer.append(&chained).await;
        if outcome == Outcome::Committed {
            self.tail = chained.tail();
        }
        outcome
    }

    /// Appends the same batch until its outcome is known (J3).
    ///
    /// # Panics
    /// It stays unknown.
    pub async fn resolve(&mut self, batch: &Batch) -> Outcome {
        insist(async || match self.append(batch).await {
            Outcome::Unknown(why) => Err(why),
            known => Ok(known),
        })
        .await
    }

    /// Appends what must be committed.
    ///
    /// # Panics
    /// It is not.
    pub async fn commit(&mut self, body: impl Into<Bytes>) {
        let batch = self.batch(body);
        assert_eq!(self.resolve(&batch).await, Outcome::Committed);
    }

    /// Asks whether the epoch is still ours, until that is known.
    ///
    /// # Panics
    /// It is not, or it stays unknown.
    pub async fn confirmed(&mut self) {
        let confirmation = insist(async || match self.opened.writer.confirm().await {
            Confirmation::Unknown(why) => Err(why),
            known => Ok(known),
        });
        assert_eq!(confirmation.await, Confirmation::Current);
    }

    /// Every slot from the first on.
    ///
    /// # Panics
    /// They cannot be read, or were compacted.
    pub async fn slots(&mut self) -> Vec<Chained> {
        read_all(self.opened.reader.as_mut()).await
    }
}

/// Asks again until there is an answer.
async fn insist<T>(mut ask: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    let asking = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(why) => last = why,
            }
            tokio::time::sleep(BREATH).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => panic!("no answer within {PATIENCE:?}: {last}"),
    }
}

/// Every slot from the first on.
///
/// # Panics
/// They cannot be read, or were compacted.
pub async fn read_all(reader: &mut dyn Reader) -> Vec<Chained> {
    match reader.slots(Slot(1)).await.expect("the journal can be read") {
        Slots::Found(found) => found,
        other => panic!("{other:?}"),
    }
}
