//! PostgreSQL: a row for each lock, taken by an upsert that also counts its token.

use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::{Client, NoTls, Statement};

use super::{Locker, Wait};

/// A row that is taken cannot be waited for beyond a transaction: whoever waits asks again.
const POLL: Duration = Duration::from_millis(1);

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench_locks \
    (name text PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL, expires_at timestamptz NOT NULL); \
    CREATE SEQUENCE IF NOT EXISTS bench_token";
const ACQUIRE: &str = "INSERT INTO bench_locks AS held (name, owner, token, expires_at) \
    VALUES ($1, $2, nextval('bench_token'), now() + interval '60 s') \
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, \
    expires_at = excluded.expires_at WHERE held.expires_at < now() RETURNING token";
const RELEASE: &str = "UPDATE bench_locks SET expires_at = '-infinity' WHERE name = $1 AND token = $2";
const RENEW: &str =
    "UPDATE bench_locks SET expires_at = now() + interval '60 s' WHERE name = $1 AND token = $2";

/// One connection.
pub(crate) struct PostgresLocker {
    client: Client,
    owner: String,
    acquire: Statement,
    release: Statement,
    renew: Statement,
}

/// A row and its token.
pub(crate) struct Held {
    name: String,
    token: i64,
}

/// Opens one connection; its task ends with the client.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // A connection that breaks is seen by the client's next call.
    tokio::spawn(async { drop(connection.await) });
    Ok(client)
}

/// Makes the table.
pub(crate) async fn prepare(url: &str) -> anyhow::Result<()> {
    connect(url).await?.batch_execute(TABLE).await.context("cannot make the table of locks")
}

impl PostgresLocker {
    /// Clients with a connection each.
    pub(crate) async fn connect(url: &str, count: usize) -> anyhow::Result<Vec<Self>> {
        let mut lockers = Vec::with_capacity(count);
        for number in 0..count {
            let client = connect(url).await?;
            let acquire = client.prepare(ACQUIRE).await?;
            let (release, renew) = (client.prepare(RELEASE).await?, client.prepare(RENEW).await?);
            lockers.push(Self { client, owner: format!("bench-{number}"), acquire, release, renew });
        }
        Ok(lockers)
    }
}

impl Locker for PostgresLocker {
    type Held = Held;

    async fn acquire(&mut self, name: &str, wait: Wait) -> anyhow::Result<Option<Held>> {
        loop {
            let row = self.client.query_opt(&self.acquire, &[&name, &self.owner]).await?;
            if let Some(row) = row {
                return Ok(Some(Held { name: name.to_owned(), token: row.get(0) }));
            }
            if wait == Wait::No {
                return Ok(None);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn release(&mut self, held: Held) -> anyhow::Result<()> {
        let rows = self.client.execute(&self.release, &[&held.name, &held.token]).await?;
        anyhow::ensure!(rows == 1, "the lock was not ours any more");
        Ok(())
    }

    async fn renew(&mut self, held: &Held) -> anyhow::Result<()> {
        let rows = self.client.execute(&self.renew, &[&held.name, &held.token]).await?;
        anyhow::ensure!(rows == 1, "the lock was not ours any more");
        Ok(())
    }
}
