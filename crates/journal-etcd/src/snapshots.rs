//! Stores snapshots beside the writer, and truncates what they cover.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    Holder, Pointer, decode_number, decode_slot, decode_tail, encode_number,
};
use leasehold_journal::{Outcome, ReadError, SnapshotHasher, SnapshotInfo, SnapshotWriter, Tail};
use leasehold_types::{Slot, ids};

use crate::client::{Client, Connector, Trouble};
use crate::keys::Keys;
use crate::proto::{TxnRequest, delete, get, is, is_missing, put};
use crate::writer::{LIMITS, write_fenced};

/// As many slots as one request removes: etcd does everything else after it.
const SLOTS_PER_DELETE: u64 = 1_000;

pub(crate) struct EtcdSnapshots {
    connector: Connector,
    keys: Keys,
    holder: Holder,
    unfinished: Option<Unfinished>,
}

/// A snapshot whose chunks are being stored.
struct Unfinished {
    client: Client,
    at: Tail,
    /// Random: two snapshots of one slot by one epoch must not share chunks.
    id: [u8; 16],
    chunks: u32,
    hasher: SnapshotHasher,
    /// The pointer as it was when this one was begun; only we can have changed it since.
    before: Option<Bytes>,
    low: u64,
}

impl Unfinished {
    fn pointer(&self) -> Pointer {
        let info = SnapshotInfo { at: self.at, chunks: self.chunks, hash: self.hasher.finish() };
        Pointer { id: self.id, info }
    }
}

impl EtcdSnapshots {
    pub(crate) fn new(connector: Connector, keys: Keys, holder: Holder) -> Self {
        Self { connector, keys, holder, unfinished: None }
    }

    async fn try_begin(&self, at: Tail) -> Result<Result<Unfinished, ReadError>, Trouble> {
        let client = self.connector.connect().await?;
        let keys = [&self.keys.tail, &self.keys.low, &self.keys.snapshot, &self.keys.slot(at.slot)];
        let success = keys.into_iter().map(get).collect();
        let answer = client.txn(TxnRequest { success, ..TxnRequest::default() }).await?;
        let tail = answer.value(0).and_then(|bytes| decode_tail(bytes)).unwrap_or_default();
        let low = answer.value(1).and_then(|bytes| decode_number(bytes)).unwrap_or(0);
        let before = answer.value(2).cloned();
        let current =
            before.as_deref().and_then(Pointer::decode).map_or(Slot(0), |pointer| pointer.info.at.slot);
        if at.slot > tail.slot || at.slot < current {
            let detail = format!("a snapshot must be between slot {current} and {}", tail.slot);
            return Ok(Err(misplaced(at, detail)));
        }
        let there = answer.value(3).and_then(|bytes| decode_slot(at.slot, bytes)).map(|found| found.hash);
        let known = if at.slot == tail.slot { Some(tail.hash) } else { there };
        if known.is_some_and(|hash| hash != at.hash) {
            return Ok(Err(misplaced(at, "the chain has another hash there".to_owned())));
        }
        let hasher = SnapshotHasher::default();
        Ok(Ok(Unfinished { client, at, id: ids::random(), chunks: 0, hasher, before, low }))
    }

    /// Switches the pointer and advances the low-water mark with it, fenced (J8, J13).
    async fn switch(&self, unfinished: &Unfinished, low: u64) -> Result<Outcome, Trouble> {
        let pointer = unfinished.pointer().encode();
        let compare = match &unfinished.before {
            Some(before) => is(&self.keys.snapshot, before),
            None => is_missing(&self.keys.snapshot),
        };
        let txn = TxnRequest {
            compare: vec![is(&self.keys.epoch, &self.holder.encode()), compare],
            success: vec![put(&self.keys.snapshot, pointer.clone()), put(&self.keys.low, encode_number(low))],
            failure: vec![get(&self.keys.epoch), get(&self.keys.snapshot)],
        };
        let answer = unfinished.client.txn(txn).await?;
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

    /// Removes what nobody reads any more: below the durable mark, which nobody can move back, so without a fence.
    /// What fails here is done by the next snapshot.
    async fn clean_up(&self, unfinished: &Unfinished, low: u64) -> Result<(), Trouble> {
        let client = &unfinished.client;
        let remove = |from: Bytes, to: Bytes| TxnRequest {
            success: vec![delete(&from, &to)],
            ..TxnRequest::default()
        };
        let mut from = unfinished.low.saturating_sub(SLOTS_PER_DELETE) + 1;
        while from <= low {
            let to = (from + SLOTS_PER_DELETE).min(low + 1);
            client.txn(remove(self.keys.slot(Slot(from)), self.keys.slot(Slot(to)))).await?;
            from = to;
        }
        let (slot, id) = (unfinished.at.slot, &unfinished.id);
        client.txn(remove(self.keys.chunks_start(), self.keys.chunk(slot, id, 0))).await?;
        let last = client.txn(remove(self.keys.chunks_after(slot, id), self.keys.chunks_end(slot))).await?;
        if self.connector.config.compact {
            client.compact(last.revision()).await?;
        }
        Ok(())
    }
}

fn misplaced(at: Tail, detail: String) -> ReadError {
    ReadError::Corrupt { place: format!("slot {}", at.slot), detail }
}

#[async_trait]
impl SnapshotWriter for EtcdSnapshots {
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError> {
        self.unfinished = None;
        let begun =
            self.try_begin(at).await.map_err(|trouble| ReadError::Unavailable(trouble.to_string()))?;
        self.unfinished = Some(begun?);
        Ok(())
    }

    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError> {
        let unavailable = |text: &str| ReadError::Unavailable(text.to_owned());
        if bytes.len() > LIMITS.chunk_bytes {
            return Err(unavailable("the chunk is over the limit"));
        }
        let unfinished = self.unfinished.as_mut().ok_or_else(|| unavailable("no snapshot was begun"))?;
        let key = self.keys.chunk(unfinished.at.slot, &unfinished.id, unfinished.chunks);
        let txn = TxnRequest { success: vec![put(&key, bytes.clone())], ..TxnRequest::default() };
        let stored = write_fenced(&unfinished.client, &self.keys, self.holder, txn).await;
        if !stored.map_err(|trouble| unavailable(&trouble.to_string()))? {
            return Err(unavailable("a newer epoch has the journal"));
        }
        unfinished.hasher.update(&bytes);
        unfinished.chunks += 1;
        Ok(())
    }

    /// May be called again after an unknown outcome: the same switch again changes nothing.
    async fn install(&mut self, keep_from: Slot) -> Outcome {
        let Some(mut unfinished) = self.unfinished.take() else {
            return Outcome::Conflict(None);
        };
        let low = unfinished.low.max(keep_from.0.saturating_sub(1).min(unfinished.at.slot.0));
        match self.switch(&unfinished, low).await {
            Ok(Outcome::Committed) => {
                if let Err(trouble) = self.clean_up(&unfinished, low).await {
                    tracing::warn!(%trouble, "old slots are removed with the next snapshot");
                }
                Outcome::Committed
            }
            Ok(refused) => refused,
            Err(trouble) => {
                self.connector.turn();
                if let Ok(client) = self.connector.connect().await {
                    unfinished.client = client;
                    self.unfinished = Some(unfinished);
                }
                Outcome::Unknown(trouble.to_string())
            }
        }
    }
}
