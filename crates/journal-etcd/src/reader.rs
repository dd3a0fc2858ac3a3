//! Reads a journal. Every read is linearizable, and what belongs together is read in one transaction.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{Pointer, decode_slot};
use leasehold_journal::remote::{ChunkCheck, Marks, StoredChunks, head_of, missing_chunk, pointer_of};
use leasehold_journal::{Chained, Head, ReadError, Reader, Slots, SnapshotInfo};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::Keys;
use crate::proto::{KeyValue, RequestOp, TxnRequest, TxnResponse, get, range};

/// As many slots as one read gives: etcd has no bound in bytes, so this many at the limit must be bearable.
const SLOTS_PER_READ: i64 = 64;

pub(crate) struct EtcdReader {
    connector: Connector,
    keys: Keys,
    /// None until the first use and after an error.
    client: Option<Client>,
    chunks: ChunkCheck,
}

impl EtcdReader {
    pub(crate) fn new(connector: Connector, keys: Keys) -> Self {
        Self { connector, keys, client: None, chunks: ChunkCheck::default() }
    }

    /// Reads several things as of one moment; the client is kept only if it worked.
    async fn read(&mut self, success: Vec<RequestOp>) -> Result<TxnResponse, ReadError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connector.connect().await.map_err(unavailable)?,
        };
        match client.txn(TxnRequest { success, ..TxnRequest::default() }).await {
            Ok(answer) => {
                self.client = Some(client);
                Ok(answer)
            }
            Err(trouble) => {
                self.connector.turn();
                Err(unavailable(trouble))
            }
        }
    }

    /// The pointer to the current snapshot.
    async fn pointer(&mut self) -> Result<Option<Pointer>, ReadError> {
        let answer = self.read(vec![get(&self.keys.identity), get(&self.keys.snapshot)]).await?;
        pointer_of([0, 1].map(|index| answer.value(index)))
    }

    fn committed(&self, kv: &KeyValue) -> Option<Chained> {
        decode_slot(self.keys.slot_of(&kv.key)?, &kv.value)
    }
}

fn unavailable(trouble: Trouble) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

#[async_trait]
impl StoredChunks for EtcdReader {
    fn check(&mut self) -> &mut ChunkCheck {
        &mut self.chunks
    }

    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let current = self.pointer().await?.filter(|pointer| pointer.info == *snapshot);
        let id = current.ok_or(ReadError::Replaced)?.id;
        let key = self.keys.chunk(snapshot.at.slot, &id, index);
        let answer = self.read(vec![get(&self.keys.snapshot), get(&key)]).await?;
        let now = answer.value(0).and_then(|bytes| Pointer::decode(bytes));
        answer.value(1).cloned().ok_or_else(|| missing_chunk(snapshot, index, id, now.as_ref()))
    }
}

#[async_trait]
impl Reader for EtcdReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        Ok(self.pointer().await?.map(|pointer| pointer.info))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        self.checked_chunk(snapshot, index).await
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        let (first, end) = (self.keys.slot(from), self.keys.slots_end());
        let marks = [get(&self.keys.identity), get(&self.keys.low), get(&self.keys.tail)];
        let wanted = marks.into_iter().chain([range(&first, &end, SLOTS_PER_READ)]).collect();
        let answer = self.read(wanted).await?;
        let Some(marks) = Marks::of([0, 1, 2].map(|index| answer.value(index)))? else {
            return Ok(Slots::Found(Vec::new()));
        };
        marks.slots(from, |_| answer.read(3).iter().map_while(|kv| self.committed(kv)).collect())
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let keys = [&self.keys.identity, &self.keys.epoch, &self.keys.tail, &self.keys.beat];
        let answer = self.read(keys.into_iter().map(get).collect()).await?;
        head_of([0, 1, 2, 3].map(|index| answer.value(index)))
    }
}
