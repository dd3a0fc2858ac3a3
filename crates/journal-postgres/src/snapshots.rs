//! Where PostgreSQL keeps the parts of a snapshot, and what is removed once they are current.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::Outcome;
use leasehold_journal::remote::{Around, Draft, SnapshotStore};
use leasehold_types::Slot;

use crate::connection::{Connection, Connector, Trouble};
use crate::row::{self, number};
use crate::sql;
use crate::writer::Holder;

/// As many slots as one statement removes, so that none runs long.
const SLOTS_PER_DELETE: i64 = 10_000;

pub(crate) struct PostgresSnapshots {
    connector: Connector,
    holder: Holder,
}

impl PostgresSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder }
    }
}

/// The number of a chunk, or how many there are, as the engine keeps it.
fn count(chunks: u32) -> Result<i32, Trouble> {
    i32::try_from(chunks).map_err(|_| Trouble::Forbidden("a snapshot of too many chunks".to_owned()))
}

#[async_trait]
impl SnapshotStore for PostgresSnapshots {
    type Link = Connection;
    type Trouble = Trouble;

    async fn connect(&self) -> Result<Connection, Trouble> {
        self.connector.connect().await
    }

    /// The low-water mark is left out: the switch itself never moves it back.
    async fn around(&self, connection: &Connection, slot: Slot) -> Result<Around, Trouble> {
        let name = self.connector.name();
        let rows = connection.query(sql::BEFORE_SNAPSHOT, &[&name, &number(slot.0)]).await?;
        let row = rows.first().ok_or(Trouble::NoTable)?;
        Ok(Around {
            tail: row::tail(row, 0).unwrap_or_default(),
            current: row::slot(row, 2),
            hash: row::hash(row, 3),
            ..Around::default()
        })
    }

    async fn store(&self, connection: &Connection, draft: &Draft, chunk: Bytes) -> Result<bool, Trouble> {
        let (name, epoch) = (self.connector.name(), number(self.holder.epoch.0));
        let (nonce, id, body): (&[u8], &[u8], &[u8]) = (self.holder.nonce.as_bytes(), &draft.id, &chunk);
        let (slot, index) = (number(draft.at.slot.0), count(draft.chunks)?);
        let stored =
            connection.execute(sql::STORE_CHUNK, &[&name, &epoch, &nonce, &slot, &id, &index, &body]).await?;
        Ok(stored > 0)
    }

    async fn switch(&self, connection: &Connection, draft: &Draft, low: u64) -> Result<Outcome, Trouble> {
        let (name, epoch, slot) =
            (self.connector.name(), number(self.holder.epoch.0), number(draft.at.slot.0));
        let info = draft.pointer().info;
        let (nonce, id): (&[u8], &[u8]) = (self.holder.nonce.as_bytes(), &draft.id);
        let (hash, whole): (&[u8], &[u8]) = (&info.at.hash.0, &info.hash.0);
        let (chunks, mark) = (count(info.chunks)?, number(low));
        let switched = connection
            .query(sql::SWITCH, &[&name, &epoch, &nonce, &slot, &id, &hash, &chunks, &whole, &mark])
            .await?;
        if !switched.is_empty() {
            return Ok(Outcome::Committed);
        }
        let beat = connection.query(sql::BEAT, &[&name, &epoch, &nonce, &0_i64]).await?;
        let is_current = beat.first().is_some_and(|row| row.get::<_, Option<i64>>(1).is_some());
        Ok(if is_current { Outcome::Conflict(None) } else { Outcome::Fenced })
    }

    async fn clean_up(&self, connection: &Connection, _: &Draft, _: u64) -> Result<(), Trouble> {
        let name = self.connector.name();
        while connection.execute(sql::TRUNCATE, &[&name, &SLOTS_PER_DELETE]).await? > 0 {}
        connection.execute(sql::DROP_CHUNKS, &[&name]).await.map(drop)
    }
}
