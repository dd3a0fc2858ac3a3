//! What the tests of several adapters share.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use leasehold_fence::cas::{CompareAndSet, Versioned};
use std::time::Duration;

use leasehold_fence::conformance::{Failure, Outcome, Protected, Race, race, run};
use leasehold_fence::{FenceError, Grant};
use leasehold_types::{FencingToken, ResourceName};

/// The seed of random tests; `LEASEHOLD_SEED=N` repeats a failed run.
pub(crate) fn seed() -> u64 {
    std::env::var("LEASEHOLD_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_115)
}

pub(crate) fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a valid name")
}

pub(crate) fn grant(resource: &str, token: u64) -> Grant {
    Grant::exclusive(name(resource), FencingToken::new(token).expect("a valid token"))
}

/// A race of 64 writers: a second or so, or as long as `LEASEHOLD_RACE_SECONDS` says.
pub(crate) fn race_length() -> Race {
    race_of(30)
}

/// The same with so many writes of each at least.
pub(crate) fn race_of(writes: u64) -> Race {
    Race { writers: 64, writes, lasting: asked_seconds().unwrap_or_default() }
}

fn asked_seconds() -> Option<Duration> {
    let asked = std::env::var("LEASEHOLD_RACE_SECONDS").ok()?;
    Some(Duration::from_secs(asked.parse().expect("a number of seconds")))
}

/// The whole suite, whose race is short; and a long one where that was asked for.
pub(crate) async fn suite(protected: &impl Protected) {
    run(protected, seed()).await;
    if asked_seconds().is_some() {
        race(protected, seed() + 1, race_length()).await;
    }
}

/// The adapter's error as the suite's.
pub(crate) fn failure<E: Into<Failure>>(error: FenceError<E>) -> FenceError<Failure> {
    match error {
        FenceError::Rejected(rejection) => FenceError::Rejected(rejection),
        FenceError::Store(error) => FenceError::Store(error.into()),
        FenceError::Corrupt(why) => FenceError::Corrupt(why),
    }
}

/// A store's error as an unknown outcome.
pub(crate) fn unknown<E: Into<Failure>>(error: E) -> FenceError<Failure> {
    FenceError::Store(error.into())
}

/// The word of an outcome.
pub(crate) fn word<T, E>(outcome: &Result<T, FenceError<E>>) -> &'static str {
    match outcome {
        Ok(_) => "admitted",
        Err(FenceError::Rejected(rejection)) => rejection.as_str(),
        Err(FenceError::Store(_)) => "store",
        Err(FenceError::Corrupt(_)) => "corrupt",
    }
}

/// The type that the suite wants.
pub(crate) type Suite = Outcome;

/// A store in memory answers at once, so that futures on one thread never meet; this one lets the others come in
/// between.
pub(crate) struct Yielding<S>(pub(crate) S);

impl<S: CompareAndSet> CompareAndSet for Yielding<S> {
    type Version = S::Version;
    type Error = S::Error;

    async fn read(&self, key: &str) -> Result<Option<Versioned<S::Version>>, S::Error> {
        let found = self.0.read(key).await;
        tokio::task::yield_now().await;
        found
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&S::Version>) -> Result<bool, S::Error> {
        let done = self.0.put_if(key, value, version).await;
        tokio::task::yield_now().await;
        done
    }
}
