//! Leading, and stopping in time.

use std::time::Duration;

use leasehold_api::ErrorCode;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_types::{EndReason, FencingToken};
use tokio_util::sync::CancellationToken;

use super::ElectionError;
use crate::error::{Lost, Refused, ReleaseError};
use crate::guard::LeaseGuard;

/// Leadership that is held: a guard, renewed in the background, that stops its work on loss *and on uncertainty*. A leader
/// that cannot know whether it still leads does not.
///
/// Dropping it resigns, best effort: not immediately and not for certain. Await [`Leadership::resign`] when it matters.
#[derive(Debug)]
pub struct Leadership {
    guard: LeaseGuard,
    draining: CancellationToken,
}

/// Why leadership was not handed over to the chosen candidate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// Nobody of that name stands. Nothing has happened: this is the leadership.
    #[error("nobody of that name is a candidate")]
    NoCandidate(Box<Leadership>),
    /// Leadership had ended before.
    #[error("leadership had ended before it was handed over: {0}")]
    NotHeld(EndReason),
    /// The service could not be reached in time. Leadership is given back as soon as it can be, to whoever is next.
    #[error("the lock service is not available: {0}")]
    Unavailable(String),
    /// The service refused. Leadership is given back, to whoever is next.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Leadership {
    pub(super) fn new(guard: LeaseGuard) -> Self {
        Self { guard, draining: CancellationToken::new() }
    }

    /// The term: the fencing token, to be sent with everything that a leader sends.
    ///
    /// # Errors
    /// Leadership is lost.
    pub fn term(&self) -> Result<FencingToken, Lost> {
        self.guard.token()
    }

    /// The lease behind it: state, remaining time, checkpoints.
    pub fn guard(&self) -> &LeaseGuard {
        &self.guard
    }

    /// Cancelled when this leader is to finish what it does and begin nothing new. It still leads meanwhile.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// Leads: runs `work` until it ends by itself. When `shutdown` completes, the work is told to drain
    /// ([`Leadership::draining`]); leadership is kept and renewed until it has, and is then released, so that the next
    /// leader begins at once and never beside this one. When leadership is lost or no longer sure, the work is dropped
    /// unfinished, before anybody else can lead.
    ///
    /// Work that blocks its thread cannot be dropped; give it [`LeaseGuard::cancelled`] and checkpoints.
    ///
    /// # Errors
    /// Leadership was no longer sure before the work was done: it may have been done in part.
    pub async fn lead<T>(
        self,
        shutdown: impl Future<Output = ()>,
        work: impl AsyncFnOnce(&Self) -> T,
    ) -> Result<T, Lost> {
        let done = self.drained(shutdown, work).await?;
        if let Err(error) = self.resign().await {
            tracing::warn!(%error, "the leader is drained, its lease ends by itself");
        }
        Ok(done)
    }

    async fn drained<T>(
        &self,
        shutdown: impl Future<Output = ()>,
        work: impl AsyncFnOnce(&Self) -> T,
    ) -> Result<T, Lost> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut unsure = std::pin::pin!(self.guard.unsure());
        let mut work = std::pin::pin!(work(self));
        loop {
            tokio::select! {
                biased;
                () = unsure.as_mut() => return Err(self.guard.why_unsure()),
                done = work.as_mut() => return Ok(done),
                () = shutdown.as_mut(), if !self.draining.is_cancelled() => self.draining.cancel(),
            }
        }
    }

    /// Tells observers something else from now on.
    ///
    /// # Errors
    /// Leadership is lost, the service does not answer in time, or refuses.
    pub async fn proclaim(&self, value: impl Into<String>) -> Result<(), ElectionError> {
        let value = value.into();
        let ask = || pb::StreamProclaim { lease_id: self.lease_bytes(), value: value.clone() };
        match self.guard.asked(|| Ask::Proclaim(ask())).await {
            Ok(Outcome::Proclaimed(_)) => Ok(()),
            Ok(Outcome::Problem(problem)) => Err(self.refused(&problem)),
            Ok(_) => Err(ElectionError::Unavailable("an answer to something else".to_owned())),
            Err(why) => Err(match self.term() {
                Err(lost) => lost.into(),
                Ok(_) => ElectionError::Unavailable(why.to_string()),
            }),
        }
    }

    /// Gives leadership back, to the candidate who has waited longest. The work must be done: drain first, or let
    /// [`Leadership::lead`] do it.
    ///
    /// # Errors
    /// See [`ReleaseError`]. Leadership ends with its ttl at the latest.
    pub async fn resign(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }

    /// Gives leadership to the candidate with this label, before all who have waited longer. The work must be done.
    ///
    /// # Errors
    /// See [`HandOverError`]; without such a candidate nothing happens, and leadership comes back with the error.
    pub async fn hand_over(self, to: &str) -> Result<(), HandOverError> {
        let ask = || pb::StreamResign { lease_id: self.lease_bytes(), to: to.to_owned() };
        match self.guard.asked(|| Ask::Resign(ask())).await {
            Ok(Outcome::Released(_)) => {
                self.guard.was_given_back();
                Ok(())
            }
            Ok(Outcome::Problem(problem)) => {
                let refused = Refused::from_wire(&problem);
                Err(match refused.reason {
                    Some(reason) => HandOverError::NotHeld(reason),
                    None if refused.code == ErrorCode::NotFound => HandOverError::NoCandidate(Box::new(self)),
                    None => HandOverError::Refused(refused),
                })
            }
            Ok(_) => Err(HandOverError::Unavailable("an answer to something else".to_owned())),
            Err(why) => Err(HandOverError::Unavailable(why.to_string())),
        }
    }

    /// Why a leader's request was refused: most often because it leads no longer.
    fn refused(&self, problem: &pb::Problem) -> ElectionError {
        match self.term() {
            Err(lost) => lost.into(),
            Ok(_) => Refused::from_wire(problem).into(),
        }
    }

    fn lease_bytes(&self) -> bytes::Bytes {
        bytes::Bytes::copy_from_slice(self.guard.lease_id().as_bytes())
    }

    /// How long leadership is surely still held; no round trip.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }
}
