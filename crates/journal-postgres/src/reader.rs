//! Reads a journal, on a connection of its own.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::{ChunkCheck, StoredChunks, damaged_slot, damaged_snapshot, whole_prefix};
use leasehold_journal::{Batch, Chained, Head, ReadError, Reader, Slots, SnapshotInfo, Tail};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connection::{Connection, Connector, Trouble};
use crate::row::{self, number};
use crate::sql;

/// As many slots as one read gives: enough that replay is not bound by round trips.
const SLOTS_PER_READ: i64 = 512;
/// And as many bytes: what a standby may have to hold in memory twice.
const BYTES_PER_READ: i64 = 4 << 20;

pub(crate) struct PostgresReader {
    connector: Connector,
    /// None until the first use and after an error.
    connection: Option<Connection>,
    chunks: ChunkCheck,
}

impl PostgresReader {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, connection: None, chunks: ChunkCheck::default() }
    }

    /// Runs one reading statement; the connection is kept only if it worked.
    async fn read(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, ReadError> {
        // Reading goes on where writing has given up: a deposed primary answers with a head that never changes again.
        let kept = self.connection.take().filter(Connection::is_of_present_turn);
        let connection = match kept {
            Some(connection) => connection,
            None => self.connector.connect().await.map_err(unavailable)?,
        };
        let rows = match connection.query(text, parameters).await {
            Ok(rows) => rows,
            Err(Trouble::NoTable) => Vec::new(),
            Err(trouble) => return Err(unavailable(trouble)),
        };
        self.connection = Some(connection);
        Ok(rows)
    }
}

fn unavailable(trouble: Trouble) -> ReadError {
    ReadError::Unavailable(trouble.to_string())
}

/// The head of a row of [`sql::HEAD`].
fn head_of(row: &Row) -> Option<Head> {
    Some(Head {
        cluster: ClusterId::from_bytes(row::fixed(row, 0)?),
        epoch: Epoch(row::counter(row, 1)),
        nonce: Nonce::from_bytes(row::fixed(row, 2)?),
        tail: Tail { slot: row::slot(row, 3), hash: row::hash(row, 4)? },
        beat: row::counter(row, 5),
    })
}

/// A slot of a row of [`sql::SLOTS`], or `None` when it is damaged.
fn committed_of(row: &Row) -> Option<Chained> {
    let batch = Batch {
        slot: row::slot(row, 2),
        id: row::batch_id(row, 4)?,
        prev_hash: row::hash(row, 5)?,
        body: row::body(row, 7),
    };
    Chained::checked(batch, Epoch(row::counter(row, 3)), row::hash(row, 6)?)
}

#[async_trait]
impl StoredChunks for PostgresReader {
    fn check(&mut self) -> &mut ChunkCheck {
        &mut self.chunks
    }

    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let name = self.connector.config.name.clone();
        let whole: &[u8] = &snapshot.hash.0;
        let column =
            i32::try_from(index).map_err(|_| damaged_snapshot(snapshot, "there is no such chunk"))?;
        let rows = self.read(sql::CHUNK, &[&name, &number(snapshot.at.slot.0), &whole, &column]).await?;
        let row = rows.first().ok_or(ReadError::Replaced)?;
        match row.get::<_, Option<&[u8]>>(0) {
            Some(bytes) => Ok(Bytes::copy_from_slice(bytes)),
            None => Err(damaged_snapshot(snapshot, &format!("chunk {index} is missing"))),
        }
    }
}

#[async_trait]
impl Reader for PostgresReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        let name = self.connector.config.name.clone();
        let rows = self.read(sql::SNAPSHOT, &[&name]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let slot = row::slot(row, 0);
        let info = (|| {
            let chunks = u32::try_from(row.get::<_, i32>(2)).ok()?;
            let at = Tail { slot, hash: row::hash(row, 1)? };
            Some(SnapshotInfo { at, chunks, hash: row::hash(row, 3)? })
        })();
        info.map(Some).ok_or_else(|| damaged_slot(slot, "the pointer to its snapshot is damaged"))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        self.checked_chunk(snapshot, index).await
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        let name = self.connector.config.name.clone();
        let rows = self.read(sql::SLOTS, &[&name, &number(from.0), &SLOTS_PER_READ, &BYTES_PER_READ]).await?;
        let Some(first) = rows.first() else { return Ok(Slots::Found(Vec::new())) };
        let (low, tail) = (row::slot(first, 0), row::slot(first, 1));
        if from <= low {
            return Ok(Slots::Compacted { oldest: low.next() });
        }
        if from > tail {
            return Ok(Slots::Found(Vec::new()));
        }
        let is_there = |row: &&Row| row.get::<_, Option<i64>>(2).is_some();
        let found = rows.iter().take_while(is_there).map_while(committed_of).collect();
        whole_prefix(from, found).map(Slots::Found)
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let name = self.connector.config.name.clone();
        let rows = self.read(sql::HEAD, &[&name]).await?;
        let row = rows.first().ok_or(ReadError::NotFounded)?;
        let damaged =
            ReadError::Corrupt { place: "head".to_owned(), detail: "a column has a wrong length".into() };
        head_of(row).ok_or(damaged)
    }
}
