//! One acquire in one session: asked until it has an answer, confirmed, made a guard.

use std::sync::Arc;
use std::time::Duration;

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_types::{Class, EndReason, FencingToken, LeaseId, Mode, ResourceName, ids};

use super::{Acquire, ONE_WAIT, Wait};
use crate::clock;
use crate::deadline::{Life, Phase, Stamp, ms};
use crate::error::{AcquireError, Holder, LostReason, NotAcquired, Refused};
use crate::guard::{Held, LeaseGuard, LeaseState};
use crate::retry::Backoff;
use crate::session::{AskError, Asking, Session, SessionEnd, lease_bytes};

impl Acquire {
    /// One lease id, asked for until it has an answer (K3).
    pub(super) async fn acquired_in(
        &self,
        session: &Session,
        name: &ResourceName,
        begun: Stamp,
        until: Option<Stamp>,
    ) -> Result<LeaseGuard, Failed> {
        let mut withdrawal = Withdrawal::new(session);
        let mut backoff = Backoff::default();
        loop {
            let sent = clock::now();
            let answered = session.heard(self.asking(session, withdrawal.lease_id, sent, until).await);
            let is_confirmed = answered.as_ref().is_ok_and(|answered| answered.is_confirmed);
            match answered.map(|answered| answered.outcome) {
                Ok(Outcome::Granted(grant)) => {
                    let granted = Granted { lease_id: withdrawal.lease_id, sent, grant, is_confirmed };
                    let taken = self.taken(session, name, granted)?;
                    let guard = Self::confirmed(session, taken).await?;
                    withdrawal.came = Came::Guard;
                    return Ok(guard);
                }
                Ok(Outcome::NotGranted(not))
                    if until.is_some_and(|until| until <= clock::now() || sent >= until) =>
                {
                    withdrawal.came = Came::Nothing;
                    return Err(Failed::With(not_acquired(not).into()));
                }
                // The wait was longer than one request waits: asked again.
                Ok(Outcome::NotGranted(_)) => {}
                Ok(Outcome::Problem(problem)) => self.refused(&mut withdrawal, &problem, begun, until)?,
                Ok(_) => {
                    return Err(Failed::With(AcquireError::Unavailable(
                        "an answer to something else".to_owned(),
                    )));
                }
                Err(AskError::Ended(SessionEnd::Refused(refused))) => {
                    return Err(Failed::With(refused.into()));
                }
                Err(AskError::Ended(end @ SessionEnd::OtherCluster { .. })) => {
                    return Err(Failed::With(AcquireError::Unavailable(end.to_string())));
                }
                Err(AskError::Ended(_)) => {
                    withdrawal.came = Came::Nothing;
                    return Err(Failed::SessionOver);
                }
                Err(AskError::Unavailable(_)) if self.may_wait_on(session, sent, until) => continue,
                Err(AskError::Unavailable(detail)) => {
                    return Err(Failed::With(AcquireError::Unavailable(detail)));
                }
            }
            // In a box, since a timer is large and almost no acquire needs it.
            Box::pin(tokio::time::sleep(backoff.pause(clock::random()))).await;
        }
    }

    fn asking<'a>(
        &self,
        session: &'a Session,
        lease_id: LeaseId,
        sent: Stamp,
        until: Option<Stamp>,
    ) -> Asking<'a, impl Fn() -> Stamp + Unpin + use<'a>> {
        let left = until.map_or(ONE_WAIT, |until| until.since(sent));
        let wait = left.min(ONE_WAIT);
        let ask = Ask::Acquire(pb::StreamAcquire {
            resource: self.resource.clone(),
            lease_id: lease_bytes(&lease_id),
            wait_ms: ms(wait),
            mode: mode(self.mode).into(),
            limit: self.limit,
            class: class(self.class).into(),
            lock_delay_ms: ms(self.lock_delay),
            max_hold_ms: self.max_hold.map(ms),
            labels: self.labels.clone(),
            value: self.value.clone(),
            traceparent: self.trace.map_or_else(String::new, |trace| trace.to_string()),
            renew_session: self.is_blocking() && self.max_hold.is_none(),
        });
        let patience = session.shared().settings.patience;
        // A longer wait is asked for again before this one ends, and so keeps its place in the queue.
        let goes_on = until.is_none_or(|until| until > sent.plus(ONE_WAIT));
        let deadline = if goes_on { sent.plus(wait * 9 / 10) } else { sent.plus(wait + patience) };
        let waits = !wait.is_zero();
        let give_up = move || match waits {
            true => deadline.min(unreachable_at(session, sent, patience)),
            false => deadline,
        };
        session.asking(ask, waits.then(|| sent.plus(wait)), give_up)
    }

    fn is_blocking(&self) -> bool {
        self.wait != Wait::For(Duration::ZERO)
    }

    /// Whether the end of one request was only the time to ask again.
    fn may_wait_on(&self, session: &Session, sent: Stamp, until: Option<Stamp>) -> bool {
        let goes_on = until.is_none_or(|until| until > sent.plus(ONE_WAIT));
        goes_on && session.phase(clock::now()) < Phase::Lost
    }

    /// A refusal that may pass is asked again while there is patience; any other is told.
    fn refused(
        &self,
        withdrawal: &mut Withdrawal<'_>,
        problem: &pb::Problem,
        begun: Stamp,
        until: Option<Stamp>,
    ) -> Result<(), Failed> {
        let refused = Refused::from_wire(problem);
        if refused.reason == Some(EndReason::SessionEnded) {
            withdrawal.came = Came::Nothing;
            return Err(Failed::SessionOver);
        }
        let patience = withdrawal.session.shared().settings.patience;
        let give_up = until.map_or(begun, |until| until).plus(patience);
        if refused.is_retryable() && clock::now() < give_up {
            return Ok(());
        }
        if refused.has_no_side_effects() {
            withdrawal.came = Came::Nothing;
        }
        Err(Failed::With(refused.into()))
    }

    /// The session has the lease from now on.
    fn taken(&self, session: &Session, name: &ResourceName, granted: Granted) -> Result<Taken, Failed> {
        let Granted { lease_id, sent, grant, is_confirmed } = granted;
        let broken = || Failed::With(AcquireError::Unavailable("a grant without a fencing token".to_owned()));
        let token = FencingToken::new(grant.fencing_token).map_err(|_| broken())?;
        let proof = Proof {
            is_blocking: self.is_blocking(),
            is_late: clock::now().since(sent) > self.ttl / 3,
            session_renewed: grant.session_renewed,
            kept_alive: is_confirmed,
        };
        let own = self.max_hold.map(|_| {
            let mut own = Life::new(self.ttl);
            own.confirm(sent, Duration::from_millis(grant.ttl_ms));
            own
        });
        let has_own = own.is_some();
        if grant.session_renewed {
            session.shared().life().extend(sent, Duration::from_millis(grant.ttl_ms));
        }
        let held = Arc::new(Held::new(name.clone(), lease_id, token, grant, own));
        if let Err(reason) = session.shared().hold(lease_id, &held) {
            return Err(Failed::With(held.why(session.shared(), reason).into()));
        }
        Ok(Taken { held, lease_id, has_own, proof })
    }

    /// What was taken is confirmed where it must be (R7), and becomes a guard.
    async fn confirmed(session: &Session, taken: Taken) -> Result<LeaseGuard, Failed> {
        let Taken { held, lease_id, has_own, proof } = taken;
        let deadline = || clock::now().plus(session.shared().settings.patience);
        let confirmed = match has_own {
            // In boxes, since almost no acquire needs them.
            true if proof.is_wanted() => Box::pin(renew_own(session, &held, lease_id, deadline())).await,
            false if proof.is_wanted() && !proof.is_there() => Box::pin(session.confirm(deadline())).await,
            _ => Ok(()),
        };
        confirmed.map_err(|error| match error {
            AskError::Ended(_) => Failed::SessionOver,
            AskError::Unavailable(detail) => Failed::With(AcquireError::Unavailable(detail)),
        })?;
        if has_own {
            tokio::spawn(keep_own(session.clone(), Arc::clone(&held), lease_id));
        }
        let guard = LeaseGuard::new(held, session.clone());
        match guard.state() {
            LeaseState::Lost(lost) => Err(Failed::With(lost.into())),
            _ => Ok(guard),
        }
    }
}

/// A grant as it came.
struct Granted {
    lease_id: LeaseId,
    /// When it was asked for.
    sent: Stamp,
    grant: pb::StreamGrant,
    /// A keep-alive that was decided after it has come with it.
    is_confirmed: bool,
}

/// A lease that the session has, and that nobody holds yet.
struct Taken {
    held: Arc<Held>,
    lease_id: LeaseId,
    /// It has a max hold, and so a life of its own.
    has_own: bool,
    proof: Proof,
}

/// Whether a grant counts as held as it came (R7).
#[derive(Clone, Copy)]
struct Proof {
    /// It may have waited for its lock.
    is_blocking: bool,
    /// It took so long that its sending says little about how long the lease still has.
    is_late: bool,
    /// Its session was renewed with it.
    session_renewed: bool,
    /// A keep-alive that was decided after it has come with it.
    kept_alive: bool,
}

impl Proof {
    /// Whether a confirmed renewal is wanted before it counts as held.
    fn is_wanted(self) -> bool {
        self.is_blocking || self.is_late
    }

    /// Whether one has come with it. A renewal in the session's name counts from the sending of the acquire, which may be long
    /// ago if that was asked again on a new connection.
    fn is_there(self) -> bool {
        self.kept_alive || (self.session_renewed && !self.is_late)
    }
}

/// Why one session gave no lease.
pub(super) enum Failed {
    With(AcquireError),
    /// Another session may.
    SessionOver,
}

/// What has come of an acquire.
enum Came {
    /// A lease or nothing.
    Unknown,
    Nothing,
    /// A lease, which is its guard's affair.
    Guard,
}

/// Gives back whatever may have come of an acquire that nobody waits for any more (A6).
struct Withdrawal<'a> {
    session: &'a Session,
    lease_id: LeaseId,
    came: Came,
}

impl<'a> Withdrawal<'a> {
    /// Of a new lease id.
    fn new(session: &'a Session) -> Self {
        let lease_id = LeaseId::from_bytes(ids::random());
        session.shared().expect_grant(lease_id);
        Self { session, lease_id, came: Came::Unknown }
    }
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        match self.came {
            Came::Guard => {}
            Came::Nothing => self.session.shared().let_go(self.lease_id),
            Came::Unknown => {
                self.session.shared().let_go(self.lease_id);
                self.session.release_in_background(self.lease_id);
            }
        }
    }
}

/// When nothing will have been heard of the service for `patience` beyond the usual.
fn unreachable_at(session: &Session, sent: Stamp, patience: Duration) -> Stamp {
    let heard = session.shared().life().confirmed().map(|at| at.plus(session.ttl() / 2));
    heard.unwrap_or(sent).max(sent).plus(patience)
}

/// Renews one lease that has a max hold, and learns how much of it is left.
async fn renew_own(
    session: &Session,
    held: &Arc<Held>,
    lease_id: LeaseId,
    deadline: Stamp,
) -> Result<(), AskError> {
    let sent = clock::now();
    let ask = Ask::Renew(pb::StreamRenew { lease_id: lease_bytes(&lease_id) });
    match session.ask(ask, deadline).await? {
        Outcome::Renewed(renewed) => held.confirm_own(sent, renewed.ttl_ms),
        Outcome::Problem(problem) => {
            let reason = Refused::from_wire(&problem).reason;
            if let Some(reason) = reason {
                held.lose(session.shared(), LostReason::of(reason));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Renews a lease with a max hold by itself, until its guard is gone.
async fn keep_own(session: Session, held: Arc<Held>, lease_id: LeaseId) {
    while !held.is_done() && !session.is_over() {
        tokio::time::sleep(session.ttl() / 3).await;
        let deadline = clock::now().plus(session.ttl() / 3);
        // One that fails is tried again; the deadline goes on meanwhile.
        drop(renew_own(&session, &held, lease_id, deadline).await);
    }
}

fn mode(mode: Mode) -> pb::Mode {
    match mode {
        Mode::Exclusive => pb::Mode::Exclusive,
        Mode::Shared => pb::Mode::Shared,
        Mode::Semaphore => pb::Mode::Semaphore,
    }
}

fn class(class: Class) -> pb::Class {
    match class {
        Class::Correctness => pb::Class::Correctness,
        Class::Efficiency => pb::Class::Efficiency,
    }
}

fn not_acquired(not: pb::NotGranted) -> NotAcquired {
    let holder = |holder: pb::Holder| Holder { owner: holder.owner_id, token: holder.fencing_token };
    NotAcquired {
        resource: not.resource,
        holders: not.holders.into_iter().map(holder).collect(),
        waiters: not.waiters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A renewal that came with a late grant says no more than the grant itself, of which nobody knows how old it is.
    #[test]
    fn a_grant_counts_with_a_keep_alive_or_with_a_renewal_that_is_young() {
        let counts_as = |is_blocking, is_late, session_renewed, kept_alive| {
            let proof = Proof { is_blocking, is_late, session_renewed, kept_alive };
            !proof.is_wanted() || proof.is_there()
        };
        let [no, yes] = [false, true];
        for (renewed, kept_alive, in_time, late) in
            [(no, no, no, no), (yes, no, yes, no), (no, yes, yes, yes), (yes, yes, yes, yes)]
        {
            assert_eq!(counts_as(yes, no, renewed, kept_alive), in_time);
            assert_eq!(counts_as(yes, yes, renewed, kept_alive), late);
            assert_eq!(counts_as(no, yes, renewed, kept_alive), late, "also one that does not wait");
            assert!(counts_as(no, no, renewed, kept_alive));
        }
    }
}
