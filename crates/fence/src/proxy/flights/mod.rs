//! Where the proxy keeps the highest tokens and its notes of requests in flight.

mod memory;
mod postgres;
mod redis;
mod sqlite;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use leasehold_types::ids::random;
use leasehold_types::{FencingToken, ResourceName};
pub use memory::MemoryFlights;
pub use postgres::PostgresFlights;
pub use redis::RedisFlights;
pub use sqlite::SqliteFlights;

use crate::http::{Failure, Maximum};
use crate::{Fence, FenceError, Grant};

/// What a store of flights answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, FenceError<Failure>>> + Send + 'a>>;

/// One request that was sent to the service and is not known to have been answered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flight(String);

impl Flight {
    /// A fresh one.
    pub(super) fn draw() -> Self {
        let bytes: [u8; 16] = random();
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flight({})", &self.0[..8.min(self.0.len())])
    }
}

/// A note of a request in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Which request.
    pub flight: Flight,
    /// The fence that it went through.
    pub fence: ResourceName,
    /// The token that it was admitted with.
    pub token: FencingToken,
    /// Moves while the proxy that sent it lives.
    pub beat: u64,
}

/// What came of asking to send a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// It is noted: send it.
    Entered,
    /// The maximum is raised, but requests with lower tokens are still in flight: nothing is noted.
    Behind,
}

/// A stored maximum together with notes of what is in flight, shared by all proxies in front of one service.
pub trait Flights: Maximum {
    /// Raises the maximum to this grant's token and notes the request, unless requests with a lower token are in
    /// flight: all in one atomic step.
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry>;

    /// Removes a note. Can be repeated.
    fn leave<'a>(&'a self, flight: &'a Flight) -> Answer<'a, ()>;

    /// Moves the beat of these notes.
    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()>;

    /// All notes.
    fn notes(&self) -> Answer<'_, Vec<Note>>;
}

/// Why a store of flights could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the fence's state at {url}: {why}")]
pub struct OpenError {
    url: String,
    why: Failure,
}

/// Opens the store of this address: `sqlite:PATH`, `postgres://…`, `redis://…`, or `memory:` for tests. Makes the
/// tables that it needs where they are missing.
///
/// # Errors
/// An address of another kind, or a store that cannot be reached. The address is shown without its password.
pub async fn open(url: &str) -> Result<Box<dyn Flights>, OpenError> {
    let opened: Result<Box<dyn Flights>, Failure> = match url.split_once(':') {
        Some(("sqlite", path)) => SqliteFlights::open(path.as_ref()).map(boxed),
        Some(("postgres" | "postgresql", _)) => PostgresFlights::open(url).await.map(boxed),
        Some(("redis", _)) => RedisFlights::open(url).await.map(boxed),
        Some(("memory", _)) => Ok(boxed(MemoryFlights::default())),
        _ => Err("it must be sqlite:PATH, postgres://…, redis://… or memory:".into()),
    };
    opened.map_err(|why| OpenError { url: without_password(url), why })
}

fn boxed(flights: impl Flights + 'static) -> Box<dyn Flights> {
    Box::new(flights)
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((kind, _)), Some((_, place))) => format!("{kind}://{place}"),
        _ => url.to_owned(),
    }
}

/// What an SQL store keeps as numbers and text.
fn note(flight: String, name: &str, token: i64, beat: i64) -> Option<Note> {
    let token = FencingToken::new(u64::try_from(token).ok()?).ok()?;
    let fence = ResourceName::new(name).ok()?;
    Some(Note { flight: Flight(flight), fence, token, beat: u64::try_from(beat).ok()? })
}

/// The notes that can be read; one that can not is no note of ours.
fn corrupt() -> FenceError<Failure> {
    FenceError::Corrupt("a note of a request in flight that can be none".to_owned())
}
