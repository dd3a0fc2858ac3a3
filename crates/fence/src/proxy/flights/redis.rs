//! On a Redis server.

use redis::{RedisError, Script};

use super::{Answer, Entry, Flight, Flights, Note, corrupt, note};
use crate::connection::Redis;
use crate::http::{Failure, Maximum};
use crate::redis::{RedisFence, present, script, verdict};
use crate::{Fence, FenceError, Grant};

/// The hashes of [`RedisFence`] and one more with the notes, on one Redis server. As durable as that server; not for a
/// cluster of Redis, where two keys may lie apart.
#[derive(Debug)]
pub struct RedisFlights {
    server: Redis,
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
        Ok(Self {
            server: Redis::connect(url).await?,
            fence: RedisFence::new(PREFIX),
            notes: "leasehold:flights".to_owned(),
            enter: script(include_str!("enter.lua")),
            beat: Script::new(include_str!("beat.lua")),
            read: Script::new(include_str!("notes.lua")),
        })
    }

    async fn enter(
        &self,
        fence: &Fence,
        grant: &Grant,
        flight: &Flight,
    ) -> Result<Entry, FenceError<Failure>> {
        let mut connection = self.server.connection().await.map_err(store)?;
        let mut call = self.enter.key(self.fence.key(fence));
        call.key(&self.notes);
        present(&mut call, fence, grant);
        call.arg(flight.as_str()).arg(fence.name().as_str());
        let answer = call.invoke_async(&mut connection).await;
        let answer: Vec<String> = self.server.checked(answer).await.map_err(store)?;
        if answer.first().is_some_and(|word| word == "behind") {
            return Ok(Entry::Behind);
        }
        verdict(&grant.write(), &answer).map_err(FenceError::boxed)?;
        Ok(Entry::Entered)
    }
}

fn store(error: RedisError) -> FenceError<Failure> {
    FenceError::Store(error.into())
}

impl Maximum for RedisFlights {
    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut connection = self.server.connection().await.map_err(store)?;
            match self.fence.claim(&mut connection, fence, grant).await {
                Err(FenceError::Store(error)) => self.server.checked(Err(error)).await.map_err(store),
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
            let mut connection = self.server.connection().await.map_err(store)?;
            let mut call = redis::cmd("HDEL");
            call.arg(&self.notes).arg(flight.as_str());
            self.server.checked(call.query_async::<()>(&mut connection).await).await.map_err(store)
        })
    }

    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut connection = self.server.connection().await.map_err(store)?;
            let mut call = self.beat.key(&self.notes);
            for flight in flights {
                call.arg(flight.as_str());
            }
            self.server.checked(call.invoke_async::<()>(&mut connection).await).await.map_err(store)
        })
    }

    fn notes(&self) -> Answer<'_, Vec<Note>> {
        Box::pin(async move {
            let mut connection = self.server.connection().await.map_err(store)?;
            let call = self.read.key(&self.notes);
            let words = call.invoke_async(&mut connection).await;
            let words: Vec<String> = self.server.checked(words).await.map_err(store)?;
            let one = |four: &[String]| {
                let [flight, name, token, beat] = four else { return None };
                note(flight.clone(), name, token.parse().ok()?, beat.parse().ok()?)
            };
            words.chunks(4).map(one).collect::<Option<Vec<_>>>().ok_or_else(corrupt)
        })
    }
}
