//! Fills an empty journal from another one (D12).

use async_trait::async_trait;
use leasehold_journal::remote::{self, Filling, filled_by_another};
use leasehold_journal::{Chained, Hash, Head, ImportError, Reader, SnapshotInfo, Tail};
use leasehold_types::{Nonce, ids};

use tokio_postgres::types::ToSql;

use crate::claim::{create_schema, refuse};
use crate::connection::{Connection, Connector, Trouble};
use crate::row::number;
use crate::sql;

/// One journal being filled; nobody can open it before the end.
struct Fill<'a> {
    connection: Connection,
    name: &'a str,
    /// Ours while we fill, so that two who fill at the same time do not mix.
    nonce: Nonce,
}

/// Copies snapshot and slots, then makes the copy a journal.
pub(crate) async fn fill(connector: &Connector, from: &mut dyn Reader) -> Result<Tail, ImportError> {
    let connection = connector.connect().await.map_err(refuse)?;
    create_schema(&connection).await.map_err(refuse)?;
    let nonce = Nonce::from_bytes(ids::random());
    remote::fill(&Fill { connection, name: connector.name(), nonce }, from).await
}

fn failed(trouble: Trouble) -> ImportError {
    ImportError::Target(refuse(trouble))
}

impl Fill<'_> {
    /// Runs a statement that changes something if, and only if, it is still we who fill.
    async fn change(&self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), ImportError> {
        if self.connection.execute(text, parameters).await.map_err(failed)? > 0 {
            return Ok(());
        }
        Err(filled_by_another())
    }
}

#[async_trait]
impl Filling for Fill<'_> {
    async fn begin(&self, head: &Head) -> Result<(), ImportError> {
        let (cluster, nonce): (&[u8], &[u8]) = (head.cluster.as_bytes(), self.nonce.as_bytes());
        let (name, zero): (&str, &[u8]) = (self.name, &Hash::ZERO.0);
        let begun = self.connection.execute(sql::BEGIN_FILL, &[&name, &cluster, &nonce, &zero]).await;
        if begun.map_err(failed)? == 0 {
            return Err(ImportError::NotEmpty(format!("there is a journal named {name}")));
        }
        for clear in [sql::CLEAR_SLOTS, sql::CLEAR_CHUNKS] {
            self.connection.execute(clear, &[&name, &nonce]).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn snapshot(&self, from: &mut dyn Reader, info: &SnapshotInfo) -> Result<(), ImportError> {
        let (nonce, id, at): (&[u8], [u8; 16], &[u8]) =
            (self.nonce.as_bytes(), ids::random(), &info.at.hash.0);
        let (id, whole): (&[u8], &[u8]) = (&id, &info.hash.0);
        let slot = number(info.at.slot.0);
        for index in 0..info.chunks {
            let body = from.chunk(info, index).await?;
            let (index, body): (i32, &[u8]) = (i32::try_from(index).unwrap_or(i32::MAX), &body);
            // Epoch 0 is that of a journal which is being filled.
            self.change(sql::STORE_CHUNK, &[&self.name, &0_i64, &nonce, &slot, &id, &index, &body]).await?;
        }
        let chunks = i32::try_from(info.chunks).unwrap_or(i32::MAX);
        self.change(sql::FILL_SNAPSHOT, &[&self.name, &nonce, &slot, &at, &id, &chunks, &whole]).await
    }

    /// Stores many slots in one statement; the tail after them.
    async fn slots(&self, found: &[Chained]) -> Result<Tail, ImportError> {
        let last = found.last().expect("the caller has found some");
        let tail = last.tail();
        let (nonce, hash): (&[u8], &[u8]) = (self.nonce.as_bytes(), &tail.hash.0);
        let slots: Vec<i64> = found.iter().map(|one| number(one.slot.0)).collect();
        let epochs: Vec<i64> = found.iter().map(|one| number(one.epoch().0)).collect();
        let ids: Vec<Vec<u8>> = found.iter().map(|one| one.id.0.to_be_bytes().to_vec()).collect();
        let before: Vec<&[u8]> = found.iter().map(|one| &one.prev_hash.0[..]).collect();
        let hashes: Vec<Vec<u8>> = found.iter().map(|one| one.hash().0.to_vec()).collect();
        let bodies: Vec<&[u8]> = found.iter().map(|one| &one.body[..]).collect();
        let last = number(tail.slot.0);
        let columns: [&(dyn ToSql + Sync); 10] =
            [&self.name, &nonce, &last, &hash, &slots, &epochs, &ids, &before, &hashes, &bodies];
        self.change(sql::FILL, &columns).await?;
        Ok(tail)
    }

    async fn end(&self, head: &Head) -> Result<(), ImportError> {
        let (nonce, left): (&[u8], &[u8]) = (self.nonce.as_bytes(), head.nonce.as_bytes());
        self.change(sql::END_FILL, &[&self.name, &nonce, &number(head.epoch.0), &left]).await
    }
}
