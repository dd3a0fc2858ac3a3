//! In an SQLite database.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{Answer, Entry, Flight, Flights, Note, corrupt, note};
use crate::http::{Failure, Maximum};
use crate::sql::{Dialect, FENCE_TABLE, FLIGHT_TABLE, ddl};
use crate::{Fence, FenceError, Grant, sqlite};

/// How long another program may hold the database.
const BUSY: Duration = Duration::from_secs(5);

type Outcome<T> = Result<T, FenceError<Failure>>;

/// The fence table and the notes in an SQLite database, which the proxies of one machine may share. Durable before an
/// answer.
#[derive(Debug, Clone)]
pub struct SqliteFlights(Arc<Mutex<Connection>>);

impl SqliteFlights {
    /// Opens or makes the database.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        for (table, migration) in
            [(FENCE_TABLE, ddl::base(Dialect::Sqlite, None)?), (FLIGHT_TABLE, ddl::flights(Dialect::Sqlite))]
        {
            make(&connection, table, &migration)?;
        }
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Off the runtime's threads: every call waits for the disk.
    fn with<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Connection) -> Outcome<T> + Send + 'static,
    ) -> Answer<'a, T> {
        let connection = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            act(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Box::pin(async move { task.await.unwrap_or_else(|gone| Err(FenceError::Store(gone.into()))) })
    }
}

fn make(connection: &Connection, table: &str, migration: &ddl::Migration) -> rusqlite::Result<()> {
    let there = connection.query_row("SELECT 1 FROM sqlite_master WHERE name = ?1", [table], |_| Ok(()));
    match there.optional()? {
        Some(()) => Ok(()),
        None => connection.execute_batch(&migration.up_script()),
    }
}

fn store(error: rusqlite::Error) -> FenceError<Failure> {
    FenceError::Store(error.into())
}

fn enter(connection: &mut Connection, fence: &Fence, grant: &Grant, flight: &Flight) -> Outcome<Entry> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store)?;
    sqlite::claim(&tx, fence, grant).map_err(FenceError::boxed)?;
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let place = params![fence.name().as_str(), grant.row_number(), token, flight.as_str()];
    let sql = format!(
        "INSERT INTO {FLIGHT_TABLE} (name, permit, token, flight, beat) SELECT ?1, ?2, ?3, ?4, 0 WHERE NOT EXISTS \
         (SELECT 1 FROM {FLIGHT_TABLE} WHERE name = ?1 AND permit = ?2 AND token < ?3)"
    );
    let noted = tx.prepare_cached(&sql).and_then(|mut insert| insert.execute(place)).map_err(store)?;
    tx.commit().map_err(store)?;
    Ok(if noted == 1 { Entry::Entered } else { Entry::Behind })
}

fn notes(connection: &Connection) -> Outcome<Vec<Note>> {
    let read = || {
        let sql = format!("SELECT flight, name, token, beat FROM {FLIGHT_TABLE}");
        let mut statement = connection.prepare_cached(&sql)?;
        let one = |row: &rusqlite::Row<'_>| {
            Ok(note(row.get(0)?, &row.get::<_, String>(1)?, row.get(2)?, row.get(3)?))
        };
        statement.query_map([], one)?.collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(store)?.into_iter().collect::<Option<Vec<_>>>().ok_or_else(corrupt)
}

impl Maximum for SqliteFlights {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a, ()> {
        let (fence, grant) = (fence.clone(), grant.clone());
        self.with(move |connection| sqlite::claim(connection, &fence, &grant).map_err(FenceError::boxed))
    }
}

impl Flights for SqliteFlights {
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry> {
        let (fence, grant, flight) = (fence.clone(), grant.clone(), flight.clone());
        self.with(move |connection| enter(connection, &fence, &grant, &flight))
    }

    fn leave<'a>(&'a self, flight: &'a Flight) -> Answer<'a, ()> {
        let flight = flight.clone();
        self.with(move |connection| {
            let sql = format!("DELETE FROM {FLIGHT_TABLE} WHERE flight = ?1");
            let left = connection.prepare_cached(&sql).and_then(|mut it| it.execute([flight.as_str()]));
            left.map(drop).map_err(store)
        })
    }

    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()> {
        let flights = flights.to_vec();
        self.with(move |connection| {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store)?;
            let sql = format!("UPDATE {FLIGHT_TABLE} SET beat = beat + 1 WHERE flight = ?1");
            for flight in &flights {
                let mut update = tx.prepare_cached(&sql).map_err(store)?;
                update.execute([flight.as_str()]).map_err(store)?;
            }
            tx.commit().map_err(store)
        })
    }

    fn notes(&self) -> Answer<'_, Vec<Note>> {
        self.with(|connection| notes(connection))
    }
}
