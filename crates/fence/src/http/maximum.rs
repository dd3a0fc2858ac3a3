//! Where the layer keeps the highest tokens.

use std::future::Future;
use std::pin::Pin;

use crate::cas::{CasFence, CompareAndSet};
use crate::{Fence, FenceError, Grant};

/// Why the stored maximum gave no answer.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
/// The answer of a stored maximum.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<(), FenceError<Failure>>> + Send + 'a>>;

/// A stored maximum for each fence.
pub trait Maximum: Send + Sync {
    /// Whether it survives the process. One that does not is for tests: no request is admitted by it once the stage is
    /// `enforce`.
    fn is_durable(&self) -> bool {
        true
    }

    /// Checks the token against the maximum and raises it, in one atomic step.
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a>;
}

impl<S: CompareAndSet<Error: std::error::Error + Send + Sync + 'static> + Send> Maximum for CasFence<S> {
    fn is_durable(&self) -> bool {
        self.store().is_durable()
    }

    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a> {
        Box::pin(async move { self.claim(fence, grant).await.map_err(FenceError::boxed) })
    }
}

/// The fence table of a PostgreSQL database.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub struct PostgresMaximum(pub tokio_postgres::Client);

#[cfg(feature = "postgres")]
impl Maximum for PostgresMaximum {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a> {
        Box::pin(
            async move { crate::postgres::claim(&self.0, fence, grant).await.map_err(FenceError::boxed) },
        )
    }
}

/// The fence table of an SQLite database. Calls block the thread for the time of one small write.
#[cfg(feature = "sqlite")]
#[derive(Debug)]
pub struct SqliteMaximum(std::sync::Mutex<rusqlite::Connection>);

#[cfg(feature = "sqlite")]
impl SqliteMaximum {
    /// Over this connection.
    pub fn new(connection: rusqlite::Connection) -> Self {
        Self(std::sync::Mutex::new(connection))
    }
}

#[cfg(feature = "sqlite")]
impl Maximum for SqliteMaximum {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a> {
        let connection = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let answer = crate::sqlite::claim(&connection, fence, grant).map_err(FenceError::boxed);
        Box::pin(std::future::ready(answer))
    }
}

/// The hashes of a Redis server.
#[cfg(feature = "redis")]
#[derive(Debug)]
pub struct RedisMaximum<C> {
    fence: crate::redis::RedisFence,
    connection: C,
}

#[cfg(feature = "redis")]
impl<C: redis::aio::ConnectionLike + Clone + Send + Sync> RedisMaximum<C> {
    /// Over a connection that many can share.
    pub fn new(fence: crate::redis::RedisFence, connection: C) -> Self {
        Self { fence, connection }
    }
}

#[cfg(feature = "redis")]
impl<C: redis::aio::ConnectionLike + Clone + Send + Sync> Maximum for RedisMaximum<C> {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a> {
        let mut connection = self.connection.clone();
        Box::pin(
            async move { self.fence.claim(&mut connection, fence, grant).await.map_err(FenceError::boxed) },
        )
    }
}
