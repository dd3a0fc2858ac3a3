//! In a PostgreSQL database.

use tokio_postgres::Client;

use super::{Answer, Entry, Flight, Flights, Note, corrupt, note};
use crate::connection::Postgres;
use crate::http::{Failure, Maximum};
use crate::sql::{Dialect, FENCE_TABLE, FLIGHT_TABLE, ddl};
use crate::{Fence, FenceError, Grant, postgres};

/// The fence table and the notes in a PostgreSQL database, over one connection that is made again when it is lost.
/// Without TLS: for a database on the same machine or network.
#[derive(Debug)]
pub struct PostgresFlights(Postgres);

impl PostgresFlights {
    /// Connects, and makes the tables that are missing.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let postgres = Postgres::connect(url).await?;
        postgres.make(FENCE_TABLE, &ddl::base(Dialect::Postgres, None)?).await?;
        postgres.make(FLIGHT_TABLE, &ddl::flights(Dialect::Postgres)).await?;
        Ok(Self(postgres))
    }

    async fn execute(&self, sql: &str, flights: &[&str]) -> Result<(), FenceError<Failure>> {
        let client = self.0.client().await.map_err(store)?;
        client.execute(sql, &[&flights]).await.map(drop).map_err(store)
    }
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
            let client = self.0.client().await.map_err(store)?;
            postgres::claim(&*client, fence, grant).await.map_err(FenceError::boxed)
        })
    }
}

impl Flights for PostgresFlights {
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry> {
        Box::pin(async move {
            let mut client = self.0.client().await.map_err(store)?;
            enter(&mut client, fence, grant, flight).await
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
            let client = self.0.client().await.map_err(store)?;
            let sql = format!("SELECT flight, name, token, beat FROM {FLIGHT_TABLE}");
            let rows = client.query(&sql, &[]).await.map_err(store)?;
            let one = |row: &tokio_postgres::Row| {
                Ok(note(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
            };
            let read: Result<Vec<_>, _> = rows.iter().map(one).collect();
            read.map_err(store)?.into_iter().collect::<Option<_>>().ok_or_else(corrupt)
        })
    }
}
