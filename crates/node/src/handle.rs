//! The way to the loop.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use leasehold_core::{ClusterSecret, Command, Credentials, FormatRaised, Operator, RaiseFormat, Reply};
use leasehold_types::TenantName;
use tokio::sync::watch;

use crate::cell::{Answer, Asker, Cell, Stage};
use crate::config::{PATIENCE, STALL};
use crate::open::new_secret;
use crate::seat::Seat;
use crate::shared::{Message, Phase, Shared};
use crate::{Active, Beside, Call, Durable, Lane, Status, SubmitError, Trail, Watch, WatchFrom};

/// Brings commands to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    seat: Arc<Seat>,
}

impl Handle {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// Brings a command to the loop and waits for its reply, at most the wait of an acquire and 10 s (L5).
    ///
    /// Cancel-safe in this sense: dropping the future of a waiting acquire withdraws it, and a grant that meets a
    /// dropped future is given back at once, unless the caller chose the lease id or sent a key (A6). Any other command
    /// may still happen when its future is dropped.
    ///
    /// # Errors
    /// See [`SubmitError`]; a lawful no is a reply, not an error.
    pub async fn submit(&self, call: Call) -> Result<Durable<Reply>, SubmitError> {
        self.submit_noting(call, None).await
    }

    /// The same, and notes in the trail how the call fares, for traces.
    ///
    /// # Errors
    /// See [`Handle::submit`].
    pub async fn submit_noting(
        &self,
        call: Call,
        trail: Option<Arc<Trail>>,
    ) -> Result<Durable<Reply>, SubmitError> {
        // The life of the node that this call belongs to, whatever becomes of the node meanwhile.
        let shared = self.seat.shared();
        let arrived = shared.clock.monotonic();
        may_enter(&shared, arrived)?;
        if !shared.admit(&call) {
            shared.observer.shed();
            return Err(SubmitError::Overloaded);
        }
        let mut submission = Submission::new(&shared, &call, arrived);
        let asker = Asker::new(Arc::clone(&submission.cell));
        if shared.queue.send(Message::Call(call, asker, trail)).is_err() {
            may_enter(&shared, arrived)?;
            return Err(SubmitError::NotActive);
        }
        submission.answer().await
    }

    /// A way for many commands at once: one wake-up of the loop for a batch of them, one wake-up of the caller for
    /// everything that a commit answers. For whoever has many calls under way, such as the session stream.
    pub fn lane<T>(&self) -> Lane<T> {
        Lane::new(Arc::clone(&self.seat))
    }

    /// A place on the loop's own thread, where nothing that is handed to the loop or comes from it wakes another thread. There
    /// is a number of them, while this node is the active one and its journal moves: behind one that is stuck nobody could tell a newcomer.
    pub fn beside_the_loop(&self) -> Option<Beside> {
        let life = self.seat.shared();
        may_enter(&life, life.clock.monotonic()).ok()?;
        self.seat.places().take(life)
    }

    /// Whether an append blocks the loop's thread, so that nothing is decided meanwhile: where nobody shares the journal.
    pub fn appends_block(&self) -> bool {
        self.seat.places().may_block()
    }

    /// The node as it is now; never waits for the loop.
    pub fn status(&self) -> Status {
        let active = self.seat.active().borrow().clone();
        self.seat.shared().status(active)
    }

    /// What the nodes of a shared journal prove themselves to each other with (N7); `None` as long as there is none.
    pub fn secret(&self) -> Option<ClusterSecret> {
        self.seat.shared().secret()
    }

    /// Who the callers are, as far as is known here: on the active node everything that was answered, on a standby what
    /// it has followed.
    pub fn credentials(&self) -> Arc<Credentials> {
        self.seat.shared().credentials()
    }

    /// Lets facts of the newest format that this node knows into the journal (N10), where there is an older one. Whoever
    /// asks has made sure that no older node is alive: it would stop.
    ///
    /// # Errors
    /// See [`SubmitError`].
    pub async fn raise_format(
        &self,
        operator: Operator,
        identity: Option<Box<str>>,
    ) -> Result<FormatRaised, SubmitError> {
        let shared = self.seat.shared();
        let raise = RaiseFormat { format: shared.identity.known_format, secret: new_secret(), operator };
        let (tenant, command) = (TenantName::default_tenant(), Command::RaiseFormat(raise));
        let durable = self.submit(Call { tenant, identity, key: None, command }).await?;
        match durable.into_inner() {
            Reply::FormatRaised(raised) => {
                shared.raise_format(raised.format, raised.secret.as_ref());
                Ok(raised)
            }
            other => panic!("the table answered a raised format with {other:?}"),
        }
    }

    /// Who is the active node of a journal that several nodes share, and every change of it. `None` while nobody is, or
    /// while that is not known.
    pub fn active(&self) -> watch::Receiver<Option<Active>> {
        self.seat.active()
    }

    /// Follows what happens to a tenant's resources, as long as this node is the active one.
    pub fn watch(&self, tenant: TenantName, from: WatchFrom) -> Watch {
        Watch::new(Arc::clone(&self.seat.shared().ring), tenant, from)
    }
}

pub(crate) fn may_enter(shared: &Shared, now: Duration) -> Result<(), SubmitError> {
    match shared.phase() {
        Phase::Serving if shared.is_stalled(now) => Err(no_progress()),
        Phase::Serving => Ok(()),
        Phase::Closing => Err(SubmitError::ShuttingDown),
        Phase::Stopped => Err(shared
            .trouble()
            .map_or(SubmitError::NotActive, |why| SubmitError::StoreUnavailable(why.to_string()))),
    }
}

pub(crate) fn no_progress() -> SubmitError {
    SubmitError::StoreUnavailable(format!("no commit has made progress for {} s", STALL.as_secs()))
}

/// A call on its way. Dropped before it was answered, it calls the command back as far as that can be done.
struct Submission<'a> {
    shared: &'a Shared,
    cell: Arc<Cell>,
    tenant: TenantName,
    waits: bool,
    given_back_unheard: bool,
    /// When stillness is looked into next.
    look_at: Duration,
    deadline: Duration,
}

impl<'a> Submission<'a> {
    fn new(shared: &'a Shared, call: &Call, arrived: Duration) -> Self {
        let waits = call.wait_ms() > 0;
        let deadline = arrived + Duration::from_millis(call.wait_ms()) + PATIENCE;
        Self {
            shared,
            cell: Cell::new(),
            tenant: call.tenant.clone(),
            waits,
            given_back_unheard: call.is_given_back_unheard(),
            look_at: (arrived + STALL).min(deadline),
            deadline,
        }
    }

    async fn answer(&mut self) -> Answer {
        loop {
            let mut silence = self.shared.clock.sleep_until(self.look_at);
            let answered = poll_fn(|cx| match self.cell.poll(cx) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => silence.as_mut().poll(cx).map(|()| None),
            });
            if let Some(answer) = answered.await {
                return answer;
            }
            if let Some(answer) = self.after_silence() {
                return answer;
            }
        }
    }

    /// Gives up when nothing moves (N5) or the deadline has come (L5); else looks again later.
    fn after_silence(&mut self) -> Option<Answer> {
        let now = self.shared.clock.monotonic();
        let stalled = self.shared.is_stalled(now);
        // One in a queue has nothing to lose by staying there; its wait ends by itself.
        let hopeless = stalled && (!self.waits || self.cell.is_queued());
        if !hopeless && now < self.deadline {
            self.look_at = (now + STALL / 4).min(self.deadline);
            return None;
        }
        let stage = self.cell.leave();
        self.call_back(&stage);
        Some(match stage {
            Stage::Answered(answer) => answer,
            Stage::Queued if stalled => Err(no_progress()),
            Stage::Queued => {
                Err(SubmitError::StoreUnavailable("the command was not taken in time".to_owned()))
            }
            Stage::Taken(_) | Stage::Left => {
                Err(SubmitError::OutcomeUnknown("the commit was not confirmed in time".to_owned()))
            }
        })
    }

    /// Withdraws what the loop has taken and this caller will not hear of.
    fn call_back(&self, left_at: &Stage) {
        if let Stage::Taken(ticket) = left_at
            && self.waits
        {
            self.tell(Message::Withdraw(self.tenant.clone(), *ticket));
        }
    }

    fn tell(&self, message: Message) {
        // A loop that has stopped has nothing to withdraw or give back.
        let _ = self.shared.queue.send(message);
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        let stage = self.cell.leave();
        self.call_back(&stage);
        if let Stage::Answered(Ok(durable)) = &stage
            && self.given_back_unheard
            && let Some(lease_id) = durable.granted_lease()
        {
            self.tell(Message::GiveBack(self.tenant.clone(), lease_id));
        }
    }
}
