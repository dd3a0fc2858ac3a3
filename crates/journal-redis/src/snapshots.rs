//! Stores snapshots beside the writer, and truncates what they cover.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    Holder, Pointer, decode_number, decode_slot, decode_tail, encode_number,
};
use leasehold_journal::{Outcome, ReadError, SnapshotHasher, SnapshotInfo, SnapshotWriter, Tail};
use leasehold_types::{Slot, ids};

use crate::client::{Client, Connector, Trouble};
use crate::keys::{self, EPOCH, LOW, SNAPSHOT, TAIL};
use crate::txn::{Field, Table, Txn};
use crate::writer::LIMITS;

/// As many slots as one call removes: Redis does nothing else meanwhile.
const SLOTS_PER_DELETE: u64 = 1_000;

pub(crate) struct RedisSnapshots {
    connector: Connector,
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

impl RedisSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder, unfinished: None }
    }

    async fn try_begin(&self, at: Tail) -> Result<Result<Unfinished, ReadError>, Trouble> {
        let client = self.connector.connect().await?;
        let mut fields: Vec<_> = [TAIL, LOW, SNAPSHOT].map(Field::head).into();
        fields.push(keys::slot(at.slot));
        let answer = client.run(&Txn::read(fields)).await?;
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
        let txn = Txn {
            compare: vec![(EPOCH, Some(self.holder.encode())), (SNAPSHOT, unfinished.before.clone())],
            set: vec![(Field::head(SNAPSHOT), pointer.clone()), (Field::head(LOW), encode_number(low))],
            delete: Vec::new(),
            get: vec![Field::head(EPOCH), Field::head(SNAPSHOT)],
        };
        let answer = unfinished.client.run(&txn).await?;
        if answer.value(0) != Some(&self.holder.encode()) {
            return Ok(Outcome::Fenced);
        }
        // Ours, from this attempt or from one whose answer was lost.
        let ours = answer.value(1) == Some(&pointer);
        Ok(if ours { Outcome::Committed } else { Outcome::Conflict(None) })
    }

    /// Removes what nobody reads any more: below the durable mark, which nobody can move back, so without a fence.
    /// What fails here is done by the next snapshot.
    async fn clean_up(&self, unfinished: &Unfinished, low: u64) -> Result<(), Trouble> {
        let client = &unfinished.client;
        let mut from = unfinished.low.saturating_sub(SLOTS_PER_DELETE) + 1;
        while from <= low {
            let to = (from + SLOTS_PER_DELETE).min(low + 1);
            let delete = (from..to).map(|slot| keys::slot(Slot(slot))).collect();
            client.run(&Txn { delete, ..Txn::default() }).await?;
            from = to;
        }
        let stored: Vec<String> = client.command("HKEYS", &[&client.keys.chunks]).await?;
        let ours = keys::chunks_of(unfinished.at.slot, &unfinished.id);
        // Chunks of later slots may be those of a newer epoch's snapshot under way.
        let end = format!("{:016x}0", unfinished.at.slot.0);
        let gone = stored.into_iter().filter(|field| *field < end && !field.starts_with(&ours));
        let delete: Vec<_> = gone.map(|field| Field(Table::Chunks, field)).collect();
        client.run(&Txn { delete, ..Txn::default() }).await.map(drop)
    }
}

fn misplaced(at: Tail, detail: String) -> ReadError {
    ReadError::Corrupt { place: format!("slot {}", at.slot), detail }
}

#[async_trait]
impl SnapshotWriter for RedisSnapshots {
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
        let field = keys::chunk(unfinished.at.slot, &unfinished.id, unfinished.chunks);
        let compare = vec![(EPOCH, Some(self.holder.encode()))];
        let txn = Txn { compare, set: vec![(field, bytes.clone())], ..Txn::default() };
        let stored = unfinished.client.run(&txn).await;
        if !stored.map_err(|trouble| unavailable(&trouble.to_string()))?.succeeded {
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
                if let Ok(client) = self.connector.connect().await {
                    unfinished.client = client;
                    self.unfinished = Some(unfinished);
                }
                Outcome::Unknown(trouble.to_string())
            }
        }
    }
}
