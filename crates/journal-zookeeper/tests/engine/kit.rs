//! A small node over a private engine.

use bytes::Bytes;
use leasehold_journal::{
    Batch, BatchId, Claim, Committed, Journal, Opened, Outcome, Reader, Slots, Tail, chain,
};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

pub(crate) fn journal(url: &str) -> ZookeeperJournal {
    ZookeeperJournal::new(ZookeeperConfig::from_url(url, "main", |_| None).unwrap())
}

pub(crate) fn claim() -> Claim {
    Claim {
        nonce: Nonce::from_bytes(ids::random()),
        new_cluster: ClusterId::from_bytes([7; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

/// One claim and what its owner believes of the tail.
pub(crate) struct Node {
    pub(crate) opened: Opened,
    pub(crate) tail: Tail,
}

impl Node {
    pub(crate) async fn open(journal: &ZookeeperJournal) -> Self {
        let opened = journal.open(claim()).await.unwrap();
        let tail = opened.tail;
        Self { opened, tail }
    }

    pub(crate) fn batch(&self, body: &'static str) -> Batch {
        let slot = self.tail.slot.next();
        Batch {
            slot,
            id: BatchId(slot.0.into()),
            prev_hash: self.tail.hash,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    /// Appends once, and believes it if it is committed.
    pub(crate) async fn append(&mut self, batch: &Batch) -> Outcome {
        let outcome = self.opened.writer.append(batch).await;
        if outcome == Outcome::Committed {
            self.tail = Tail { slot: batch.slot, hash: chain(batch, self.opened.epoch) };
        }
        outcome
    }

    pub(crate) async fn commit(&mut self, body: &'static str) {
        let batch = self.batch(body);
        assert_eq!(self.append(&batch).await, Outcome::Committed);
    }
}

pub(crate) async fn read_all(reader: &mut dyn Reader) -> Vec<Committed> {
    match reader.slots(Slot(1)).await.unwrap() {
        Slots::Found(found) => found,
        other => panic!("{other:?}"),
    }
}
