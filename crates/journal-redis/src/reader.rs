//! Reads a journal; what belongs together is read by one call of the script.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{Pointer, decode_slot};
use leasehold_journal::remote::{ChunkCheck, Marks, StoredChunks, head_of, missing_chunk, pointer_of};
use leasehold_journal::{Head, ReadError, Reader, Slots, SnapshotInfo};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::{self, BEAT, EPOCH, IDENTITY, LOW, SNAPSHOT, TAIL};
use crate::txn::{Answer, Field, Txn};

/// As many slots as one read gives: Redis does nothing else meanwhile.
const SLOTS_PER_READ: u64 = 64;

pub(crate) struct RedisReader {
    connector: Connector,
    /// None until the first use and after an error.
    client: Option<Client>,
    chunks: ChunkCheck,
}

impl RedisReader {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, client: None, chunks: ChunkCheck::default() }
    }

    /// Reads several things as of one moment; the client is kept only if it worked.
    async fn read(&mut self, fields: Vec<Field>) -> Result<Answer, ReadError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connector.connect().await.map_err(unavailable)?,
        };
        let answer = client.run(&Txn::read(fields)).await.map_err(unavailable)?;
        self.client = Some(client);
        Ok(answer)
    }

    /// The pointer to the current snapshot.
    async fn pointer(&mut self) -> Result<Option<Pointer>, ReadError> {
        let answer = self.read(vec![Field::head(IDENTITY), Field::head(SNAPSHOT)]).await?;
        pointer_of([0, 1].map(|index| answer.value(index)))
    }
}

fn unavailable(trouble: Trouble) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

#[async_trait]
impl StoredChunks for RedisReader {
    fn check(&mut self) -> &mut ChunkCheck {
        &mut self.chunks
    }

    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let current = self.pointer().await?.filter(|pointer| pointer.info == *snapshot);
        let id = current.ok_or(ReadError::Replaced)?.id;
        let chunk = keys::chunk(snapshot.at.slot, &id, index);
        let answer = self.read(vec![Field::head(SNAPSHOT), chunk]).await?;
        let now = answer.value(0).and_then(|bytes| Pointer::decode(bytes));
        answer.value(1).cloned().ok_or_else(|| missing_chunk(snapshot, index, id, now.as_ref()))
    }
}

#[async_trait]
impl Reader for RedisReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        Ok(self.pointer().await?.map(|pointer| pointer.info))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        self.checked_chunk(snapshot, index).await
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        let wanted = (from.0..from.0.saturating_add(SLOTS_PER_READ)).map(Slot);
        let mut fields = vec![Field::head(IDENTITY), Field::head(LOW), Field::head(TAIL)];
        fields.extend(wanted.clone().map(keys::slot));
        let answer = self.read(fields).await?;
        let Some(marks) = Marks::of([0, 1, 2].map(|index| answer.value(index)))? else {
            return Ok(Slots::Found(Vec::new()));
        };
        marks.slots(from, |tail| {
            let stored = wanted.take_while(|slot| *slot <= tail.slot).zip(answer.values_from(3));
            stored.map_while(|(slot, bytes)| decode_slot(slot, bytes?)).collect()
        })
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let answer = self.read([IDENTITY, EPOCH, TAIL, BEAT].map(Field::head).into()).await?;
        head_of([0, 1, 2, 3].map(|index| answer.value(index)))
    }
}
