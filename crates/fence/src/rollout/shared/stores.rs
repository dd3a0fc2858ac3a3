//! Where the document lies: beside the state of the fence, or in a shared file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Script;
use rusqlite::{Connection, OptionalExtension, params};

use crate::cas::{CompareAndSet, FileStore, Versioned};
use crate::connection::{Postgres, Redis};
use crate::sql::{DOCUMENT_TABLE, Dialect, ddl};

/// Why the store gave no answer.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long another program may hold an SQLite database.
const BUSY: Duration = Duration::from_secs(5);

/// A store of small documents, opened by its address.
#[derive(Debug)]
pub struct Documents(Kind);

#[derive(Debug)]
enum Kind {
    File(FileStore),
    Sqlite(Arc<Mutex<Connection>>),
    Postgres(Postgres),
    Redis { server: Redis, put: Script },
}

/// What is different for different bytes.
#[derive(Debug)]
pub struct Version(Vec<u8>);

impl Documents {
    /// Opens the store of this address: `file:DIRECTORY`, `sqlite:PATH`, `postgres://…` or `redis://…`. Makes the table
    /// that it needs where it is missing.
    ///
    /// # Errors
    /// An address of another kind, or a store that cannot be reached.
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let kind = match url.split_once(':') {
            Some(("file", path)) => Kind::File(FileStore::open(Path::new(path))?),
            Some(("sqlite", path)) => Kind::Sqlite(Arc::new(Mutex::new(sqlite(Path::new(path))?))),
            Some(("postgres" | "postgresql", _)) => {
                let postgres = Postgres::connect(url).await?;
                postgres.make(DOCUMENT_TABLE, &ddl::documents(Dialect::Postgres)).await?;
                Kind::Postgres(postgres)
            }
            Some(("redis", _)) => {
                Kind::Redis { server: Redis::connect(url).await?, put: Script::new(include_str!("put.lua")) }
            }
            _ => return Err("it must be file:DIRECTORY, sqlite:PATH, postgres://… or redis://…".into()),
        };
        Ok(Self(kind))
    }
}

fn sqlite(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let there =
        connection.query_row("SELECT 1 FROM sqlite_master WHERE name = ?1", [DOCUMENT_TABLE], |_| Ok(()));
    if there.optional()?.is_none() {
        connection.execute_batch(&ddl::documents(Dialect::Sqlite).up_script())?;
    }
    Ok(connection)
}

/// The bytes are their own version: [`Document`](super::document::Document) draws a random number for each put.
fn versioned(bytes: Vec<u8>) -> Versioned<Version> {
    (bytes.clone(), Version(bytes))
}

async fn blocking<T: Send + 'static>(
    connection: &Arc<Mutex<Connection>>,
    act: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let connection = connection.clone();
    let run = move || act(&connection.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(tokio::task::spawn_blocking(run).await??)
}

impl CompareAndSet for Documents {
    type Version = Version;
    type Error = Failure;

    async fn read(&self, key: &str) -> Result<Option<Versioned<Version>>, Failure> {
        let found: Option<Vec<u8>> = match &self.0 {
            Kind::File(files) => files.read(key).await?.map(|(bytes, _)| bytes),
            Kind::Sqlite(connection) => {
                let (sql, key) =
                    (format!("SELECT document FROM {DOCUMENT_TABLE} WHERE name = ?1"), key.to_owned());
                blocking(connection, move |connection| {
                    connection.query_row(&sql, [key], |row| row.get(0)).optional()
                })
                .await?
            }
            Kind::Postgres(postgres) => {
                let sql = format!("SELECT document FROM {DOCUMENT_TABLE} WHERE name = $1");
                let row = postgres.client().await?.query_opt(&sql, &[&key]).await?;
                row.map(|row| row.try_get(0)).transpose()?
            }
            Kind::Redis { server, .. } => {
                let mut connection = server.connection().await?;
                let answer = redis::cmd("GET").arg(redis_key(key)).query_async(&mut connection).await;
                server.checked(answer).await?
            }
        };
        Ok(found.map(versioned))
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&Version>) -> Result<bool, Failure> {
        let before = version.map(|version| &version.0);
        match &self.0 {
            Kind::File(files) => Ok(files.put_if(key, value, before).await?),
            Kind::Sqlite(connection) => {
                let (key, value, before) = (key.to_owned(), value.to_vec(), before.cloned());
                let changed = blocking(connection, move |connection| match before {
                    None => connection.execute(&insert("?1", "?2"), params![key, value]),
                    Some(before) => {
                        connection.execute(&update("?1", "?2", "?3"), params![key, value, before])
                    }
                });
                Ok(changed.await? == 1)
            }
            Kind::Postgres(postgres) => {
                let client = postgres.client().await?;
                let changed = match before {
                    None => client.execute(&insert("$1", "$2"), &[&key, &value]).await?,
                    Some(before) => {
                        client.execute(&update("$1", "$2", "$3"), &[&key, &value, before]).await?
                    }
                };
                Ok(changed == 1)
            }
            Kind::Redis { server, put } => {
                let mut connection = server.connection().await?;
                let mut call = put.key(redis_key(key));
                call.arg(value).arg(before.map_or(&[][..], Vec::as_slice));
                let answer = call.invoke_async(&mut connection).await;
                Ok(server.checked::<i64>(answer).await? == 1)
            }
        }
    }
}

fn redis_key(key: &str) -> String {
    format!("leasehold:document:{key}")
}

fn insert(name: &str, document: &str) -> String {
    format!(
        "INSERT INTO {DOCUMENT_TABLE} (name, document) VALUES ({name}, {document}) ON CONFLICT DO NOTHING"
    )
}

fn update(name: &str, document: &str, before: &str) -> String {
    format!("UPDATE {DOCUMENT_TABLE} SET document = {document} WHERE name = {name} AND document = {before}")
}
