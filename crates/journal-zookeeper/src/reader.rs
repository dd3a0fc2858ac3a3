//! Reads a journal, each time after the server has caught up with its leader.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{Pointer, decode_slot};
use leasehold_journal::remote::{ChunkCheck, Marks, StoredChunks, head_of, missing_chunk, pointer_of};
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
        pointer_of([0, 1].map(|index| data(&found, index)))
    }
}

fn data(found: &Found, index: usize) -> Option<&Bytes> {
    found.get(index)?.as_ref().map(|(bytes, _)| bytes)
}

fn unavailable(trouble: Trouble) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

#[async_trait]
impl StoredChunks for ZookeeperReader {
    fn check(&mut self) -> &mut ChunkCheck {
        &mut self.chunks
    }

    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let current = self.pointer().await?.filter(|pointer| pointer.info == *snapshot);
        let id = current.ok_or(ReadError::Replaced)?.id;
        let path = self.connector.paths.chunk(snapshot.at.slot, &id, index);
        match data(&self.read(&[&path]).await?, 0) {
            Some(chunk) => Ok(chunk.clone()),
            None => Err(missing_chunk(snapshot, index, id, self.pointer().await?.as_ref())),
        }
    }
}

#[async_trait]
impl Reader for ZookeeperReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        Ok(self.pointer().await?.map(|pointer| pointer.info))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        self.checked_chunk(snapshot, index).await
    }

    /// The slots are read before the marks: what was truncated in between is then said to be compacted.
    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        let paths = self.connector.paths.clone();
        let wanted: Vec<_> = (from.0..from.0.saturating_add(SLOTS_PER_READ)).map(Slot).collect();
        let nodes: Vec<_> = wanted.iter().map(|slot| paths.slot(*slot)).collect();
        let stored = self.read(&nodes.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let marks = self.read(&[&paths.identity, &paths.low, &paths.tail]).await?;
        let Some(marks) = Marks::of([0, 1, 2].map(|index| data(&marks, index)))? else {
            return Ok(Slots::Found(Vec::new()));
        };
        let decode = |(slot, node): (&Slot, &Option<(Bytes, i32)>)| decode_slot(*slot, &node.as_ref()?.0);
        let mut found: Vec<_> = wanted.iter().zip(&stored).map_while(decode).collect();
        // Nothing was there, and the tail is past it: appended between the two reads, or damaged. Look once more.
        if found.is_empty() && from <= marks.tail.slot {
            let again = self.read(&[&nodes[0]]).await?;
            found.extend(data(&again, 0).and_then(|bytes| decode_slot(from, bytes)));
        }
        marks.slots(from, |_| found)
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let paths = self.connector.paths.clone();
        let found = self.read(&[&paths.identity, &paths.epoch, &paths.tail, &paths.beat]).await?;
        head_of([0, 1, 2, 3].map(|index| data(&found, index)))
    }
}
