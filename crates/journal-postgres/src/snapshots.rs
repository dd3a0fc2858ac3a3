//! Stores snapshots beside the writer, and truncates what they cover.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::{Outcome, ReadError, SnapshotHasher, SnapshotWriter, Tail};
use leasehold_types::{Slot, ids};

use crate::connection::{Connection, Connector, Trouble};
use crate::row::{self, number};
use crate::sql;
use crate::writer::{Holder, LIMITS};

/// As many slots as one statement removes, so that none runs long.
const SLOTS_PER_DELETE: i64 = 10_000;

pub(crate) struct PostgresSnapshots {
    connector: Connector,
    holder: Holder,
    /// Only while a snapshot is being stored: a third connection is not kept for what happens once in a while.
    unfinished: Option<Unfinished>,
}

/// A snapshot whose chunks are being stored.
struct Unfinished {
    connection: Connection,
    at: Tail,
    /// Random: two snapshots of one slot by one epoch must not share chunks.
    id: [u8; 16],
    chunks: i32,
    hasher: SnapshotHasher,
}

impl PostgresSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder, unfinished: None }
    }

    async fn try_begin(&self, at: Tail) -> Result<Result<Unfinished, ReadError>, Trouble> {
        let connection = self.connector.connect().await?;
        let name = self.connector.name();
        let rows = connection.query(sql::BEFORE_SNAPSHOT, &[&name, &number(at.slot.0)]).await?;
        let Some(row) = rows.first() else { return Err(Trouble::NoTable) };
        let (tail, current) = (row::slot(row, 0), row::slot(row, 2));
        if at.slot > tail || at.slot < current {
            return Ok(Err(misplaced(at, &format!("a snapshot must be between slot {current} and {tail}"))));
        }
        let known = if at.slot == tail { row::hash(row, 1) } else { row::hash(row, 3) };
        if known.is_some_and(|hash| hash != at.hash) {
            return Ok(Err(misplaced(at, "the chain has another hash there")));
        }
        let hasher = SnapshotHasher::default();
        Ok(Ok(Unfinished { connection, at, id: ids::random(), chunks: 0, hasher }))
    }

    async fn try_install(&self, unfinished: &Unfinished, keep_from: Slot) -> Result<Outcome, Trouble> {
        let Unfinished { connection, at, id, chunks, hasher } = unfinished;
        let (name, epoch, nonce) = (self.connector.name(), number(self.holder.epoch.0), self.holder.nonce);
        let (nonce, id, hash): (&[u8], &[u8], &[u8]) = (nonce.as_bytes(), id, &at.hash.0);
        let whole = hasher.finish();
        let (whole, mark): (&[u8], i64) = (&whole.0, number(keep_from.0.saturating_sub(1)));
        let slot = number(at.slot.0);
        let switched = connection
            .query(sql::SWITCH, &[&name, &epoch, &nonce, &slot, &id, &hash, chunks, &whole, &mark])
            .await?;
        if !switched.is_empty() {
            return Ok(Outcome::Committed);
        }
        let beat = connection.query(sql::BEAT, &[&name, &epoch, &nonce, &0_i64]).await?;
        let is_current = beat.first().is_some_and(|row| row.get::<_, Option<i64>>(1).is_some());
        Ok(if is_current { Outcome::Conflict(None) } else { Outcome::Fenced })
    }

    /// Removes what nobody reads any more. What fails here is done by the next snapshot: the mark is durable already.
    async fn clean_up(&self, connection: &Connection) -> Result<(), Trouble> {
        let name = self.connector.name();
        while connection.execute(sql::TRUNCATE, &[&name, &SLOTS_PER_DELETE]).await? > 0 {}
        connection.execute(sql::DROP_CHUNKS, &[&name]).await.map(drop)
    }
}

fn misplaced(at: Tail, detail: &str) -> ReadError {
    ReadError::Corrupt { place: format!("slot {}", at.slot), detail: detail.to_owned() }
}

#[async_trait]
impl SnapshotWriter for PostgresSnapshots {
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
        let (name, epoch) = (self.connector.name(), number(self.holder.epoch.0));
        let (nonce, id, body): (&[u8], &[u8], &[u8]) = (self.holder.nonce.as_bytes(), &unfinished.id, &bytes);
        let slot = number(unfinished.at.slot.0);
        let stored = unfinished
            .connection
            .execute(sql::STORE_CHUNK, &[&name, &epoch, &nonce, &slot, &id, &unfinished.chunks, &body])
            .await
            .map_err(|trouble| unavailable(&trouble.to_string()))?;
        if stored == 0 {
            return Err(unavailable("a newer epoch has the journal"));
        }
        unfinished.hasher.update(&bytes);
        unfinished.chunks += 1;
        Ok(())
    }

    /// May be called again after an unknown outcome: the same switch again changes nothing.
    async fn install(&mut self, keep_from: Slot) -> Outcome {
        let Some(unfinished) = self.unfinished.take() else {
            return Outcome::Conflict(None);
        };
        match self.try_install(&unfinished, keep_from).await {
            Ok(Outcome::Committed) => {
                if let Err(trouble) = self.clean_up(&unfinished.connection).await {
                    tracing::warn!(%trouble, "old slots are removed with the next snapshot");
                }
                Outcome::Committed
            }
            Ok(refused) => refused,
            Err(trouble) => {
                self.retry_later(unfinished).await;
                Outcome::Unknown(trouble.to_string())
            }
        }
    }
}

impl PostgresSnapshots {
    /// Keeps an unfinished snapshot for another attempt, if the engine can be reached.
    async fn retry_later(&mut self, mut unfinished: Unfinished) {
        if let Ok(connection) = self.connector.connect().await {
            unfinished.connection = connection;
            self.unfinished = Some(unfinished);
        }
    }
}
