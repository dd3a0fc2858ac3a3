//! The guard of a lease: knows how long it is surely held, and tells the work in time.

mod held;
mod holder;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_types::{EndReason, FencingToken, Guarantee, LeaseId};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock;
use crate::deadline::{Phase, Stamp, margin};
use crate::error::{CheckpointError, Lost, LostReason, Refused, ReleaseError};
use crate::retry::Backoff;
use crate::session::{AskError, Session, release};
use held::{deadline_of, phase_of, until};

pub(crate) use held::Held;

/// How sure the holder of a lease may be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Held, and renewed a short time ago.
    Held,
    /// Still surely held, but renewals are late.
    Late,
    /// Within the margin before the deadline: work has been cancelled, checkpoints refuse. A renewal may still come.
    Uncertain,
    /// Lost, for good.
    Lost(Lost),
}

/// A held lease. It is renewed in the background until it is released, dropped or lost.
///
/// Dropping it gives the lease back, best effort: **not immediately and not for certain**, since nobody waits for the
/// answer. Await [`LeaseGuard::release`] when it matters.
pub struct LeaseGuard {
    held: Arc<Held>,
    session: Session,
}

impl LeaseGuard {
    pub(crate) fn new(held: Arc<Held>, session: Session) -> Self {
        Self { held, session }
    }

    /// The resource.
    pub fn resource(&self) -> &str {
        self.held.resource.as_str()
    }

    /// The capability to renew and release this lease; as secret as a password.
    pub fn lease_id(&self) -> LeaseId {
        self.held.lease_id
    }

    /// Which of a semaphore's places this lease has.
    pub fn permit(&self) -> Option<u32> {
        self.held.grant.permit
    }

    /// What the grant guarantees.
    pub fn guarantee(&self) -> Guarantee {
        match self.held.grant.guarantee() {
            pb::Guarantee::BestEffort => Guarantee::BestEffort,
            pb::Guarantee::LeaseOnly => Guarantee::LeaseOnly,
            pb::Guarantee::Fenced => Guarantee::Fenced,
        }
    }

    /// Advice that came with the grant, such as a ttl outside the sensible range.
    pub fn warning(&self) -> Option<&str> {
        Some(self.held.grant.warning.as_str()).filter(|text| !text.is_empty())
    }

    /// When the lease would have ended without renewals, by the server's wall clock: for people.
    pub fn expires_at(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.held.grant.expires_at_ms)
    }

    /// The ttl.
    pub fn ttl(&self) -> Duration {
        self.session.ttl()
    }

    /// What is kept free before the deadline.
    pub fn margin(&self) -> Duration {
        margin(self.session.ttl())
    }

    /// The fencing token, to be sent with every protected write.
    ///
    /// # Errors
    /// The lease is lost, and the token is not good any more.
    pub fn token(&self) -> Result<FencingToken, Lost> {
        match self.state() {
            LeaseState::Lost(lost) => Err(lost),
            _ => Ok(self.held.token),
        }
    }

    /// The token as the service signed it with the grant, for a fence that wants more than a number; `None` where the
    /// service has no signing keys.
    ///
    /// # Errors
    /// As [`LeaseGuard::token`].
    pub fn signed_token(&self) -> Result<Option<&str>, Lost> {
        self.token()?;
        Ok(Some(self.held.grant.signed_token.as_str()).filter(|text| !text.is_empty()))
    }

    /// How long the lease is surely still held; no round trip.
    pub fn remaining(&self) -> Duration {
        match self.held.is_lost() {
            true => Duration::ZERO,
            false => self.deadline().since(clock::now()),
        }
    }

    /// How sure the holder may be right now.
    pub fn state(&self) -> LeaseState {
        let phase = self.phase(clock::now());
        match (phase, self.held.lost()) {
            (_, Some(lost)) => LeaseState::Lost(lost),
            (Phase::Held, None) => LeaseState::Held,
            (Phase::Late, None) => LeaseState::Late,
            (Phase::Uncertain | Phase::Lost, None) => LeaseState::Uncertain,
        }
    }

    /// Asks before a side effect whether there is time for it: `cost` and the margin must be left. Gives the token to
    /// send along. No round trip.
    ///
    /// # Errors
    /// Too little time is left, or the lease is lost: do not begin the side effect.
    pub fn checkpoint(&self, cost: Duration) -> Result<FencingToken, CheckpointError> {
        if let LeaseState::Lost(lost) = self.state() {
            return Err(lost.into());
        }
        let (left, needed) = (self.remaining(), cost + self.margin());
        if left < needed { Err(CheckpointError::TooLittleLeft { left, needed }) } else { Ok(self.held.token) }
    }

    /// Completes when the lease is lost, and says why. Cancel-safe. Work should stop earlier: see
    /// [`LeaseGuard::cancelled`].
    pub async fn lost(&self) -> Lost {
        until(&self.held, self.session.shared(), Phase::Lost).await;
        match self.state() {
            LeaseState::Lost(lost) => lost,
            _ => std::future::pending().await,
        }
    }

    /// Completes when the lease is no longer sure: at the deadline less the margin, or when it is lost before (K4).
    /// Cancel-safe.
    pub async fn unsure(&self) {
        until(&self.held, self.session.shared(), Phase::Uncertain).await;
    }

    /// A token that is cancelled when the lease is no longer sure, to hand to work elsewhere. It stays cancelled, even
    /// if a late renewal saves the lease.
    pub fn cancelled(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let (fire, held, shared) = (token.clone(), Arc::clone(&self.held), Arc::clone(self.session.shared()));
        tokio::spawn(async move {
            until(&held, &shared, Phase::Uncertain).await;
            if !held.done.load(Relaxed) {
                fire.cancel();
            }
        });
        token
    }

    /// Runs `work`, and drops it unfinished when the lease is no longer sure, so that it has stopped before the lease
    /// can have ended. The lease is still held afterwards, unless lost.
    ///
    /// Work that blocks its thread cannot be dropped; give it [`LeaseGuard::cancelled`] and checkpoints.
    ///
    /// # Errors
    /// The lease was no longer sure before the work was done: it may have been done in part.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&Self) -> T) -> Result<T, Lost> {
        tokio::select! {
            biased;
            () = self.unsure() => Err(self.why_unsure()),
            done = work(self) => Ok(done),
        }
    }

    /// Gives the lease back and waits until that is durable.
    ///
    /// # Errors
    /// See [`ReleaseError`]. The lease ends with its ttl at the latest.
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.finish();
        match self.asked(|| release(self.held.lease_id)).await {
            Ok(Outcome::Released(_)) => Ok(()),
            Ok(Outcome::Problem(problem)) => {
                let refused = Refused::from_wire(&problem);
                Err(match refused.reason {
                    Some(reason) => ReleaseError::NotHeld(reason),
                    None => ReleaseError::Refused(refused),
                })
            }
            Ok(_) => Err(ReleaseError::Unavailable("an answer to something else".to_owned())),
            // The session's end released it.
            Err(AskError::Ended(_)) => Err(ReleaseError::NotHeld(EndReason::SessionEnded)),
            Err(AskError::Unavailable(detail)) => {
                self.session.release_in_background(self.held.lease_id);
                Err(ReleaseError::Unavailable(detail))
            }
        }
    }

    /// Asks something about this lease, and again while the refusal may pass and there is patience.
    pub(crate) async fn asked(&self, ask: impl Fn() -> Ask) -> Result<Outcome, AskError> {
        let deadline = clock::now().plus(self.session.shared().settings.patience);
        let mut backoff = Backoff::default();
        loop {
            match self.session.ask(ask(), deadline).await {
                Ok(Outcome::Problem(problem)) if problem.retryable && clock::now() < deadline => {
                    tokio::time::sleep(backoff.pause(clock::random())).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// The lease was given back by what was asked.
    pub(crate) fn was_given_back(self) {
        self.finish();
    }

    /// From now on it is not this guard's affair.
    fn finish(&self) {
        self.held.finish();
        self.session.shared().let_go(self.held.lease_id);
    }

    /// Why work was stopped: lost, or about to be.
    pub fn why_unsure(&self) -> Lost {
        match self.state() {
            LeaseState::Lost(lost) => lost,
            _ => self.held.why(self.session.shared(), LostReason::NotRenewed),
        }
    }

    /// When the lease can end at the earliest.
    fn deadline(&self) -> Stamp {
        deadline_of(&self.held, self.session.shared())
    }

    fn phase(&self, now: Stamp) -> Phase {
        phase_of(&self.held, self.session.shared(), now)
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { resource, token, lease_id, .. } = &*self.held;
        let short = lease_id.short();
        f.debug_struct("LeaseGuard")
            .field("resource", resource)
            .field("token", token)
            .field("lease", &short)
            .finish()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if self.held.done.swap(true, Relaxed) {
            return;
        }
        self.held.poke.notify_waiters();
        self.session.shared().let_go(self.held.lease_id);
        let told_gone = |lost: Lost| lost.reason != LostReason::NotRenewed;
        if !self.held.lost().is_some_and(told_gone) && !self.session.is_over() {
            warn!(
                resource = self.resource(),
                "a guard was dropped without a release; the lease is given back in the background"
            );
            self.session.release_in_background(self.held.lease_id);
        }
    }
}
