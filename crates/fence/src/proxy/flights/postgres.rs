//! In a PostgreSQL database.

use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::{Client, NoTls};

use super::{Answer, Entry, Flight, Flights, Note, corrupt, note};
use crate::http::{Failure, Maximum};
use crate::sql::{Dialect, FENCE_TABLE, FLIGHT_TABLE, ddl};
use crate::{Fence, FenceError, Grant, postgres};

/// The fence table and the notes in a PostgreSQL database, over one connection that is made again when it is lost.
/// Without TLS: for a database on the same machine or network.
pub struct PostgresFlights {
    url: String,
    client: Mutex<Option<Client>>,
}

impl std::fmt::Debug for PostgresFlights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresFlights").finish_non_exhaustive()
    }
}

impl PostgresFlights {
    /// Connects, and makes the tables that are missing.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let client = connect(url).await?;
        make(&client, FENCE_TABLE, &ddl::base(Dialect::Postgres, None)?).await?;
        make(&client, FLIGHT_TABLE, &ddl::flights(Dialect::Postgres)).await?;
        Ok(Self { url: url.to_owned(), client: Mutex::new(Some(client)) })
    }

    async fn client(&self) -> Result<MutexGuard<'_, Option<Client>>, FenceError<Failure>> {
        let mut client = self.client.lock().await;
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = Some(connect(&self.url).await.map_err(store)?);
        }
        Ok(client)
    }

    async fn execute(&self, sql: &str, flights: &[&str]) -> Result<(), FenceError<Failure>> {
        let client = self.client().await?;
        current(&client).execute(sql, &[&flights]).await.map(drop).map_err(store)
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Its end is seen by the client's `is_closed`.
    tokio::spawn(connection);
    Ok(client)
}

async fn make(client: &Client, table: &str, migration: &ddl::Migration) -> Result<(), tokio_postgres::Error> {
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await?;
    if there.try_get(0)? { Ok(()) } else { client.batch_execute(&migration.up_script()).await }
}

fn current(client: &Option<Client>) -> &Client {
    client.as_ref().expect("it was connected just now")
}

fn store(error: tokio_postgres::Error) -> FenceError<Failure> {
    FenceError::Store(error.into())
}

async fn enter(
    client: &mut Client,
    fence: &Fence,
    grant: &Grant,
    flight: &Flight,
) -> Result<Entry, FenceError<Failure>> {
    let tx = client.transaction().await.map_err(store)?;
    // Whether it raises the maximum or only reads it, the claim holds the fence's row until the commit.
    postgres::claim(&tx, fence, grant).await.map_err(FenceError::boxed)?;
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let sql = format!(
        "INSERT INTO {FLIGHT_TABLE} (name, permit, token, flight, beat) \
         SELECT $1::text, $2::bigint, $3::bigint, $4::text, 0 WHERE NOT EXISTS \
         (SELECT 1 FROM {FLIGHT_TABLE} WHERE name = $1 AND permit = $2 AND token < $3)"
    );
    let (name, permit, flight) = (fence.name().as_str(), grant.row_number(), flight.as_str());
    let noted = tx.execute(&sql, &[&name, &permit, &token, &flight]).await.map_err(store)?;
    tx.commit().await.map_err(store)?;
    Ok(if noted == 1 { Entry::Entered } else { Entry::Behind })
}

impl Maximum for PostgresFlights {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            let client = self.client().await?;
            postgres::claim(current(&client), fence, grant).await.map_err(FenceError::boxed)
        })
    }
}

impl Flights for PostgresFlights {
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry> {
        Box::pin(async move {
            let mut client = self.client().await?;
            enter(client.as_mut().expect("it was connected just now"), fence, grant, flight).await
        })
    }

    fn leave<'a>(&'a self, flight: &'a Flight) -> Answer<'a, ()> {
        let sql = format!("DELETE FROM {FLIGHT_TABLE} WHERE flight = ANY($1)");
        Box::pin(async move { self.execute(&sql, &[flight.as_str()]).await })
    }

    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()> {
        let sql = format!("UPDATE {FLIGHT_TABLE} SET beat = beat + 1 WHERE flight = ANY($1)");
        Box::pin(
            async move { self.execute(&sql, &flights.iter().map(Flight::as_str).collect::<Vec<_>>()).await },
        )
    }

    fn notes(&self) -> Answer<'_, Vec<Note>> {
        Box::pin(async move {
            let client = self.client().await?;
            let sql = format!("SELECT flight, name, token, beat FROM {FLIGHT_TABLE}");
            let rows = current(&client).query(&sql, &[]).await.map_err(store)?;
            let one = |row: &tokio_postgres::Row| {
                Ok(note(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
            };
            let read: Result<Vec<_>, _> = rows.iter().map(one).collect();
            read.map_err(store)?.into_iter().collect::<Option<_>>().ok_or_else(corrupt)
        })
    }
}
