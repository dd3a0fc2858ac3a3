//! Where etcd keeps the parts of a snapshot, and what is removed once they are current.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::Outcome;
use leasehold_journal::remote::record::{Holder, encode_number};
use leasehold_journal::remote::{Around, Draft, SnapshotStore};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::Keys;
use crate::proto::{TxnRequest, delete, get, is, is_missing, put};
use crate::writer::write_fenced;

/// As many slots as one request removes: etcd does everything else after it.
const SLOTS_PER_DELETE: u64 = 1_000;

pub(crate) struct EtcdSnapshots {
    connector: Connector,
    keys: Keys,
    holder: Holder,
}

impl EtcdSnapshots {
    pub(crate) fn new(connector: Connector, keys: Keys, holder: Holder) -> Self {
        Self { connector, keys, holder }
    }
}

fn remove(from: &Bytes, to: &Bytes) -> TxnRequest {
    TxnRequest { success: vec![delete(from, to)], ..TxnRequest::default() }
}

#[async_trait]
impl SnapshotStore for EtcdSnapshots {
    type Link = Client;
    type Trouble = Trouble;

    async fn connect(&self) -> Result<Client, Trouble> {
        self.connector.connect().await
    }

    async fn reconnect(&self) -> Result<Client, Trouble> {
        self.connector.turn();
        self.connector.connect().await
    }

    async fn around(&self, client: &Client, slot: Slot) -> Result<Around, Trouble> {
        let keys = [&self.keys.tail, &self.keys.low, &self.keys.snapshot, &self.keys.slot(slot)];
        let success = keys.into_iter().map(get).collect();
        let answer = client.txn(TxnRequest { success, ..TxnRequest::default() }).await?;
        Ok(Around::of_values(slot, [0, 1, 2, 3].map(|index| answer.value(index))))
    }

    async fn store(&self, client: &Client, draft: &Draft, chunk: Bytes) -> Result<bool, Trouble> {
        let key = self.keys.chunk(draft.at.slot, &draft.id, draft.chunks);
        let txn = TxnRequest { success: vec![put(&key, chunk)], ..TxnRequest::default() };
        write_fenced(client, &self.keys, self.holder, txn).await
    }

    async fn switch(&self, client: &Client, draft: &Draft, low: u64) -> Result<Outcome, Trouble> {
        let pointer = draft.pointer().encode();
        let compare = match &draft.before.pointer {
            Some(before) => is(&self.keys.snapshot, before),
            None => is_missing(&self.keys.snapshot),
        };
        let txn = TxnRequest {
            compare: vec![is(&self.keys.epoch, &self.holder.encode()), compare],
            success: vec![put(&self.keys.snapshot, pointer.clone()), put(&self.keys.low, encode_number(low))],
            failure: vec![get(&self.keys.epoch), get(&self.keys.snapshot)],
        };
        let answer = client.txn(txn).await?;
        if answer.succeeded {
            return Ok(Outcome::Committed);
        }
        if answer.value(0) != Some(&self.holder.encode()) {
            return Ok(Outcome::Fenced);
        }
        // Ours already, from an attempt whose answer was lost.
        let ours = answer.value(1) == Some(&pointer);
        Ok(if ours { Outcome::Committed } else { Outcome::Conflict(None) })
    }

    async fn clean_up(&self, client: &Client, draft: &Draft, low: u64) -> Result<(), Trouble> {
        let mut from = draft.before.low.saturating_sub(SLOTS_PER_DELETE) + 1;
        while from <= low {
            let to = (from + SLOTS_PER_DELETE).min(low + 1);
            client.txn(remove(&self.keys.slot(Slot(from)), &self.keys.slot(Slot(to)))).await?;
            from = to;
        }
        let (slot, id) = (draft.at.slot, &draft.id);
        client.txn(remove(&self.keys.chunks_start(), &self.keys.chunk(slot, id, 0))).await?;
        let last = client.txn(remove(&self.keys.chunks_after(slot, id), &self.keys.chunks_end(slot))).await?;
        if self.connector.config.compact {
            client.compact(last.revision()).await?;
        }
        Ok(())
    }
}
