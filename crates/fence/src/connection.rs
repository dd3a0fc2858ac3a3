//! Connections of servers that live for long: made again when they are lost.

use std::fmt;
use std::ops::{Deref, DerefMut};

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::{Client, NoTls};

use crate::sql::ddl::Migration;

/// One connection to PostgreSQL, used by one at a time. Without TLS.
pub(crate) struct Postgres {
    url: String,
    client: Mutex<Option<Client>>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password.
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

/// The connection, as long as it is held.
pub(crate) struct Held<'a>(MutexGuard<'a, Option<Client>>);

impl Deref for Held<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("it was connected before it was held")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect("it was connected before it was held")
    }
}

impl Postgres {
    pub(crate) async fn connect(url: &str) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { url: url.to_owned(), client: Mutex::new(Some(connect(url).await?)) })
    }

    pub(crate) async fn client(&self) -> Result<Held<'_>, tokio_postgres::Error> {
        let mut client = self.client.lock().await;
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = Some(connect(&self.url).await?);
        }
        Ok(Held(client))
    }

    /// Runs the migration if its table is not there.
    pub(crate) async fn make(&self, table: &str, migration: &Migration) -> Result<(), tokio_postgres::Error> {
        let client = self.client().await?;
        let there = client.query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&table]).await?;
        if there.try_get(0)? { Ok(()) } else { client.batch_execute(&migration.up_script()).await }
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Its end is seen by the client's `is_closed`.
    tokio::spawn(connection);
    Ok(client)
}

/// One connection to Redis, shared by all.
#[derive(Debug)]
pub(crate) struct Redis {
    client: redis::Client,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Redis {
    pub(crate) async fn connect(url: &str) -> Result<Self, RedisError> {
        let client = redis::Client::open(url)?;
        let connection = client.get_multiplexed_async_connection().await?;
        Ok(Self { client, connection: Mutex::new(Some(connection)) })
    }

    pub(crate) async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref() {
            return Ok(open.clone());
        }
        Ok(connection.insert(self.client.get_multiplexed_async_connection().await?).clone())
    }

    /// Passes an answer on; a connection that failed is not used again.
    pub(crate) async fn checked<T>(&self, answer: Result<T, RedisError>) -> Result<T, RedisError> {
        if let Err(error) = &answer
            && (error.is_io_error() || error.is_connection_dropped() || error.is_timeout())
        {
            *self.connection.lock().await = None;
        }
        answer
    }
}
