//! Reads a journal, each time after the server has caught up with its leader.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    Holder, Identity, Pointer, Stage, decode_number, decode_slot, decode_tail,
};
use leasehold_journal::remote::{ChunkCheck, damaged_slot, damaged_snapshot, whole_prefix};
use leasehold_journal::{Head, ReadError, Reader, Slots, SnapshotInfo};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};

/// As many slots as one read gives.
const SLOTS_PER_READ: u64 = 64;

/// What was read of each node that was asked for.
type Found = Vec<Option<(Bytes, i32)>>;

pub(crate) struct ZookeeperReader {
    connector: Connector,
    /// None until the first use and after an error.
    client: Option<Client>,
    chunks: ChunkCheck,
}

impl ZookeeperReader {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, client: None, chunks: ChunkCheck::default() }
    }

    /// Reads several nodes; the client is kept only if it worked.
    async fn read(&mut self, paths: &[&str]) -> Result<Found, ReadError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connector.connect().await.map_err(unavailable)?,
        };
        client.sync().await.map_err(unavailable)?;
        let found = client.read(paths).await.map_err(unavailable)?;
        self.client = Some(client);
        Ok(found)
    }

    /// The pointer to the current snapshot.
    async fn pointer(&mut self) -> Result<Option<Pointer>, ReadError> {
        let paths = self.connector.paths.clone();
        let found = self.read(&[&paths.identity, &paths.snapshot]).await?;
        if identity_of(&found).is_none() {
            return Ok(None);
        }
        let bytes = data(&found, 1).filter(|bytes| !bytes.is_empty());
        bytes.map(|bytes| Pointer::decode(bytes).ok_or_else(|| damaged("snapshot"))).transpose()
    }

    /// One chunk as stored, if the snapshot is still the current one.
    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let current = self.pointer().await?.filter(|pointer| pointer.info == *snapshot);
        let id = current.ok_or(ReadError::Replaced)?.id;
        let path = self.connector.paths.chunk(snapshot.at.slot, &id, index);
        if let Some(chunk) = data(&self.read(&[&path]).await?, 0) {
            return Ok(chunk.clone());
        }
        match self.pointer().await? {
            Some(now) if now.id == id => {
                Err(damaged_snapshot(snapshot, &format!("chunk {index} is missing")))
            }
            _ => Err(ReadError::Replaced),
        }
    }
}

fn data(found: &Found, index: usize) -> Option<&Bytes> {
    found.get(index)?.as_ref().map(|(bytes, _)| bytes)
}

/// The identity, read first, unless the journal is only begun to be filled.
fn identity_of(found: &Found) -> Option<Identity> {
    data(found, 0)
        .and_then(|bytes| Identity::decode(bytes))
        .filter(|identity| identity.stage > Stage::Filling)
}

fn unavailable(trouble: Trouble) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

fn damaged(node: &str) -> ReadError {
    ReadError::Corrupt {
        place: format!("node {node}"),
        detail: "it is missing or has a wrong length".to_owned(),
    }
}

#[async_trait]
impl Reader for ZookeeperReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        Ok(self.pointer().await?.map(|pointer| pointer.info))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        for before in self.chunks.needs_from(snapshot, index)..index {
            let chunk = self.stored_chunk(snapshot, before).await?;
            self.chunks.take(&chunk)?;
        }
        let chunk = self.stored_chunk(snapshot, index).await?;
        self.chunks.take(&chunk)?;
        Ok(chunk)
    }

    /// The slots are read before the marks: what was truncated in between is then said to be compacted.
    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        let paths = self.connector.paths.clone();
        let wanted: Vec<_> = (from.0..from.0.saturating_add(SLOTS_PER_READ)).map(Slot).collect();
        let nodes: Vec<_> = wanted.iter().map(|slot| paths.slot(*slot)).collect();
        let stored = self.read(&nodes.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let marks = self.read(&[&paths.identity, &paths.low, &paths.tail]).await?;
        if identity_of(&marks).is_none() {
            return Ok(Slots::Found(Vec::new()));
        }
        let low = data(&marks, 1).and_then(|bytes| decode_number(bytes)).ok_or_else(|| damaged("low"))?;
        let tail = data(&marks, 2).and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged("tail"))?;
        if from.0 <= low {
            return Ok(Slots::Compacted { oldest: Slot(low).next() });
        }
        let decode = |(slot, node): (&Slot, &Option<(Bytes, i32)>)| decode_slot(*slot, &node.as_ref()?.0);
        let found: Vec<_> = wanted.iter().zip(&stored).map_while(decode).collect();
        // Nothing was there, and the tail is past it: appended between the two reads, or damaged. Look once more.
        if found.is_empty() && from <= tail.slot {
            let again = self.read(&[&nodes[0]]).await?;
            let first = data(&again, 0).and_then(|bytes| decode_slot(from, bytes));
            let first =
                first.ok_or_else(|| damaged_slot(from, "it is before the tail but cannot be read"))?;
            return whole_prefix(from, vec![first]).map(Slots::Found);
        }
        if found.is_empty() { Ok(Slots::Found(found)) } else { whole_prefix(from, found).map(Slots::Found) }
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let paths = self.connector.paths.clone();
        let found = self.read(&[&paths.identity, &paths.epoch, &paths.tail, &paths.beat]).await?;
        let nobody = || ReadError::Unavailable("nobody has founded this journal yet".to_owned());
        let cluster = identity_of(&found).ok_or_else(nobody)?.cluster;
        let Holder { epoch, nonce } =
            data(&found, 1).and_then(|bytes| Holder::decode(bytes)).ok_or_else(|| damaged("epoch"))?;
        let tail = data(&found, 2).and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged("tail"))?;
        let beat = data(&found, 3).and_then(|bytes| decode_number(bytes)).unwrap_or(0);
        Ok(Head { cluster, epoch, nonce, tail, beat })
    }
}
