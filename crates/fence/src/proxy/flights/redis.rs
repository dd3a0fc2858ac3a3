//! On a Redis server.

use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError, Script};
use tokio::sync::Mutex;

use super::{Answer, Entry, Flight, Flights, Note, corrupt, note};
use crate::http::{Failure, Maximum};
use crate::redis::{RedisFence, verdict};
use crate::{Fence, FenceError, Grant};

/// The hashes of [`RedisFence`] and one more with the notes, on one Redis server. As durable as that server; not for a
/// cluster of Redis, where two keys may lie apart.
#[derive(Debug)]
pub struct RedisFlights {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    fence: RedisFence,
    notes: String,
    enter: Script,
    beat: Script,
    read: Script,
}

/// What every key begins with.
const PREFIX: &str = "leasehold:fence:";

impl RedisFlights {
    /// Connects.
    ///
    /// # Errors
    /// Redis's.
    pub async fn open(url: &str) -> Result<Self, Failure> {
        let client = Client::open(url)?;
        let connection = client.get_multiplexed_async_connection().await?;
        Ok(Self {
            client,
            connection: Mutex::new(Some(connection)),
            fence: RedisFence::new(PREFIX),
            notes: "leasehold:flights".to_owned(),
            enter: Script::new(include_str!("enter.lua")),
            beat: Script::new(include_str!("beat.lua")),
            read: Script::new(include_str!("notes.lua")),
        })
    }

    async fn connection(&self) -> Result<MultiplexedConnection, FenceError<Failure>> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref() {
            return Ok(open.clone());
        }
        let fresh = self.client.get_multiplexed_async_connection().await;
        Ok(connection.insert(fresh.map_err(|error| FenceError::Store(error.into()))?).clone())
    }

    /// A connection that failed is not used again.
    async fn checked<T>(&self, answer: Result<T, RedisError>) -> Result<T, FenceError<Failure>> {
        if let Err(error) = &answer
            && (error.is_io_error() || error.is_connection_dropped() || error.is_timeout())
        {
            *self.connection.lock().await = None;
        }
        answer.map_err(|error| FenceError::Store(error.into()))
    }

    async fn enter(
        &self,
        fence: &Fence,
        grant: &Grant,
        flight: &Flight,
    ) -> Result<Entry, FenceError<Failure>> {
        let mut connection = self.connection().await?;
        let mut call = self.enter.key(self.fence.key(fence));
        call.key(&self.notes).arg(fence.guard().as_str()).arg(grant.resource().as_str());
        call.arg(u8::from(fence.takes(grant.kind()))).arg(grant.row_number()).arg(grant.token().get());
        call.arg(flight.as_str()).arg(fence.name().as_str());
        let answer: Vec<String> = self.checked(call.invoke_async(&mut connection).await).await?;
        if answer.first().is_some_and(|word| word == "behind") {
            return Ok(Entry::Behind);
        }
        verdict(&grant.write(), &answer).map_err(FenceError::boxed)?;
        Ok(Entry::Entered)
    }
}

impl Maximum for RedisFlights {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            match self.fence.claim(&mut connection, fence, grant).await {
                Err(FenceError::Store(error)) => self.checked(Err(error)).await,
                other => other.map_err(FenceError::boxed),
            }
        })
    }
}

impl Flights for RedisFlights {
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry> {
        Box::pin(self.enter(fence, grant, flight))
    }

    fn leave<'a>(&'a self, flight: &'a Flight) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let mut call = redis::cmd("HDEL");
            call.arg(&self.notes).arg(flight.as_str());
            self.checked(call.query_async::<()>(&mut connection).await).await
        })
    }

    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let mut call = self.beat.key(&self.notes);
            for flight in flights {
                call.arg(flight.as_str());
            }
            self.checked(call.invoke_async::<()>(&mut connection).await).await
        })
    }

    fn notes(&self) -> Answer<'_, Vec<Note>> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let call = self.read.key(&self.notes);
            let words: Vec<String> = self.checked(call.invoke_async(&mut connection).await).await?;
            let one = |four: &[String]| {
                let [flight, name, token, beat] = four else { return None };
                note(flight.clone(), name, token.parse().ok()?, beat.parse().ok()?)
            };
            words.chunks(4).map(one).collect::<Option<Vec<_>>>().ok_or_else(corrupt)
        })
    }
}
