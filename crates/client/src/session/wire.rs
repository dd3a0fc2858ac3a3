//! What a session has to say and what it waits to hear, whichever connection carries it.
//!
//! Callers put requests in; the stream of the present connection takes everything that is there as one frame; answers
//! find their callers by number. When a connection breaks nothing is lost: the next one begins with everything that was
//! not answered, in the order in which it was asked.
//!
//! A release that may hand its lock on to another caller of this session has a keep-alive in its frame. That is decided
//! after the grant, and answered with it, which so needs no confirmation (R7) with a round trip of its own.
//!
//! A request has no timer of its own: most are answered in a moment, and one look at all deadlines
//! ([`Wire::wake_the_late`]) serves those that are not.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::request::Ask;
use tokio::sync::{Notify, oneshot};

use super::SessionEnd;
use super::asking::Asking;
use super::outbound::{Outbound, Reporter, Unsent};
use super::places::{Answered, Places};
use crate::clock;
use crate::deadline::Stamp;

/// A keep-alive that was sent.
struct Flying {
    id: u64,
    sent: Stamp,
    /// What it reports, to be said again if it is never answered.
    report: pb::RenewalReport,
    waiters: Vec<oneshot::Sender<()>>,
}

/// What the lock of a wire protects.
#[derive(Default)]
pub(super) struct State {
    pub(super) places: Places,
    /// The number of the present connection.
    pub(super) link: u64,
    pub(super) open: Option<pb::Open>,
    pub(super) out: Unsent,
    /// A keep-alive is to be sent, and these wait for its answer.
    wanted: Option<Vec<oneshot::Sender<()>>>,
    flying: Vec<Flying>,
    last_keep_alive: u64,
    pub(super) close: bool,
    /// Of the stream that has nothing to say.
    pub(super) waker: Option<Waker>,
    /// The stream has stepped back once since it had nothing to say.
    pub(super) rested: bool,
    pub(super) end: Option<SessionEnd>,
}

impl State {
    /// Whether there is nothing to say.
    pub(super) fn is_quiet(&self) -> bool {
        self.out.is_empty() && self.wanted.is_none() && !self.close
    }

    /// A keep-alive goes with the next frame.
    pub(super) fn want_keep_alive(&mut self) -> &mut Vec<oneshot::Sender<()>> {
        self.wanted.get_or_insert_default()
    }

    /// The keep-alive that is wanted; from now on it is under way.
    pub(super) fn make_keep_alive(&mut self, report: &Reporter) -> Option<pb::KeepAlive> {
        let waiters = self.wanted.take()?;
        let mut keep_alive = report();
        self.last_keep_alive += 1;
        keep_alive.id = self.last_keep_alive;
        let report = keep_alive.report.clone().unwrap_or_default();
        self.flying.push(Flying { id: keep_alive.id, sent: clock::now(), report, waiters });
        Some(keep_alive)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Wire {
    state: Mutex<State>,
    /// A deadline is earlier than all that were watched.
    hurry: Notify,
}

impl Wire {
    /// Asks when it is first polled, and gives the answer; nothing once the deadline has passed, which is asked for
    /// again whenever it has. Dropping it takes the place away: the request may still be carried out.
    pub(crate) fn asking<D>(&self, ask: Ask, wait_until: Option<Stamp>, deadline: D) -> Asking<'_, D>
    where
        D: Fn() -> Stamp + Unpin,
    {
        Asking::new(self, ask, wait_until, deadline)
    }

    /// Asks, and nobody waits for the answer.
    pub(crate) fn ask_unheard(&self, ask: Ask) {
        let mut state = self.lock();
        if state.end.is_none() {
            self.put(&mut state, ask, None, None);
            wake(state);
        }
    }

    /// Puts a request where the stream finds it; gives its number.
    pub(super) fn put(
        &self,
        state: &mut State,
        ask: Ask,
        wait_until: Option<Stamp>,
        caller: Option<super::places::Caller>,
    ) -> u64 {
        if caller.as_ref().is_some_and(|caller| state.places.watch(caller.deadline)) {
            self.hurry.notify_one();
        }
        let gives_back = matches!(ask, Ask::Release(_) | Ask::Resign(_));
        if gives_back && state.places.is_anybody_waiting() {
            state.want_keep_alive();
        }
        let request = state.places.ask(ask, wait_until, caller);
        if state.link > 0 {
            state.out.push(request);
        }
        request.id
    }

    /// Wakes callers at their deadlines, for as long as it is polled.
    pub(crate) async fn wake_the_late(&self) -> Infallible {
        loop {
            let soonest = self.lock().places.soonest();
            let nap = soonest.map(|soonest| soonest.since(clock::now()).min(clock::LOOK));
            tokio::select! {
                () = self.hurry.notified() => {}
                () = tokio::time::sleep(nap.unwrap_or_default()), if nap.is_some() => {}
            }
            let late = self.lock().places.late(clock::now());
            late.into_iter().for_each(Waker::wake);
        }
    }

    /// Looks at a deadline from now on.
    pub(super) fn watch(&self, state: &mut State, deadline: Stamp) {
        if state.places.watch(deadline) {
            self.hurry.notify_one();
        }
    }

    /// Wants a keep-alive to be sent.
    pub(crate) fn keep_alive(&self) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.want_keep_alive();
            wake(state);
        }
    }

    /// Tells `waiter` when a keep-alive is confirmed that the service has decided after everything that was heard of it so
    /// far: it decides in the order in which it answers, so one that is under way will do. One who asks after the session's
    /// end hears of it at once: its sender is dropped.
    pub(crate) fn confirm(&self, waiter: oneshot::Sender<()>) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        match state.flying.first_mut() {
            Some(flying) => flying.waiters.push(waiter),
            None => {
                state.want_keep_alive().push(waiter);
                wake(state);
            }
        }
    }

    /// When the oldest keep-alive without an answer was sent.
    pub(crate) fn oldest_flying(&self) -> Option<Stamp> {
        self.lock().flying.first().map(|flying| flying.sent)
    }

    /// Whether a keep-alive is to be sent or under way.
    pub(crate) fn is_keeping_alive(&self) -> bool {
        let state = self.lock();
        state.wanted.is_some() || !state.flying.is_empty()
    }

    /// A new connection: its stream begins with everything that was not answered. `report` is asked whenever a
    /// keep-alive is made.
    pub(super) fn connect(self: &Arc<Self>, open: pb::Open, report: Reporter) -> Outbound {
        let now = clock::now();
        let mut state = self.lock();
        state.link += 1;
        state.open = Some(open);
        state.out.clear();
        for request in state.places.unanswered(now) {
            state.out.push(&request);
        }
        state.want_keep_alive();
        Outbound::new(Arc::clone(self), state.link, report)
    }

    /// The present connection is gone: its stream ends, and nothing is put into it any more. Gives what was reported in
    /// vain; who waits for a keep-alive waits for the next one.
    pub(crate) fn disconnect(&self) -> Vec<pb::RenewalReport> {
        let mut state = self.lock();
        state.link += 1;
        state.out.clear();
        let flying = std::mem::take(&mut state.flying);
        let (reports, waiters): (Vec<_>, Vec<_>) =
            flying.into_iter().map(|flying| (flying.report, flying.waiters)).unzip();
        state.want_keep_alive().extend(waiters.into_iter().flatten());
        wake(state);
        reports
    }

    /// Hands out the answers of a frame, with which a keep-alive was confirmed or not: all are there before the first caller
    /// looks.
    pub(crate) fn answered(&self, answers: Vec<pb::Answer>, is_confirmed: bool) {
        let mut callers = Vec::with_capacity(answers.len());
        {
            let mut state = self.lock();
            for answer in answers {
                if let Some(outcome) = answer.outcome {
                    callers.extend(state.places.answer(answer.id, Answered { outcome, is_confirmed }));
                }
            }
        }
        callers.into_iter().for_each(Waker::wake);
    }

    /// A keep-alive is confirmed: when it was sent, and who waits for that.
    pub(crate) fn kept_alive(&self, id: u64) -> Option<(Stamp, Vec<oneshot::Sender<()>>)> {
        let mut state = self.lock();
        let place = state.flying.iter().position(|flying| flying.id == id)?;
        let flying = state.flying.remove(place);
        Some((flying.sent, flying.waiters))
    }

    /// The session is to be closed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.close = true;
        wake(state);
    }

    /// Whether [`Wire::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().close
    }

    /// The session is over: everybody who waits is told, and whoever asks later.
    pub(crate) fn end(&self, end: &SessionEnd) {
        let mut state = self.lock();
        state.end.get_or_insert_with(|| end.clone());
        let callers = state.places.end(end);
        let wanted = state.wanted.take();
        let flying = std::mem::take(&mut state.flying);
        drop(state);
        // Dropped senders wake their receivers, which may want the lock at once.
        drop((wanted, flying));
        callers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the wire")
    }
}

/// Outside the lock: whoever is woken may want it at once.
pub(super) fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_asks_after_the_end_hears_of_it_at_once() {
        let wire = Wire::default();
        wire.end(&SessionEnd::Ended);
        let told = wire.asking(Ask::Release(pb::StreamRelease::default()), None, Stamp::default).await;
        assert_eq!(told, Some(Err(SessionEnd::Ended)));
        let (confirmed, mut confirmation) = oneshot::channel();
        wire.confirm(confirmed);
        assert!(matches!(confirmation.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
