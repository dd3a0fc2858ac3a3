//! What a session has to say and what it waits to hear, whichever connection carries it.
//!
//! Callers put requests in; the stream of the present connection takes everything that is there as one frame; answers
//! find their callers by number. When a connection breaks nothing is lost: the next one begins with everything that was
//! not answered, in the order in which it was asked.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use prost::Message as _;
use tokio::sync::oneshot;
use tonic::codegen::tokio_stream::Stream;

use super::SessionEnd;
use crate::clock;
use crate::deadline::{Stamp, ms};

/// Requests of one frame take at most this: half of what a server accepts, since an opening may come with them.
const FRAME_BYTES: usize = 512 << 10;
/// So few requests fit whatever they say, and are not measured.
const SURELY_FIT: usize = 32;

/// What came of a request.
pub(crate) type Told = Result<Outcome, SessionEnd>;

/// A request that waits for its answer.
struct Pending {
    ask: Ask,
    /// Until when an acquire waits in the queue: asked again, it waits only for the rest.
    wait_until: Option<Stamp>,
    /// Nobody waits for the answer of a background release.
    reply: Option<oneshot::Sender<Told>>,
}

/// A keep-alive that was sent.
struct Flying {
    id: u64,
    sent: Stamp,
    /// What it reports, to be said again if it is never answered.
    report: pb::RenewalReport,
    waiters: Vec<oneshot::Sender<()>>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: BTreeMap<u64, Pending>,
    /// The number of the present connection.
    link: u64,
    open: Option<pb::Open>,
    out: Vec<pb::Request>,
    /// A keep-alive is to be sent, and these wait for its answer.
    wanted: Option<Vec<oneshot::Sender<()>>>,
    flying: Vec<Flying>,
    close: bool,
    waker: Option<Waker>,
    /// The stream has stepped back once since it had nothing to say.
    rested: bool,
    end: Option<SessionEnd>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Wire(Mutex<State>);

impl Wire {
    /// Asks; the answer comes under the number.
    pub(crate) fn ask(
        &self,
        ask: Ask,
        wait_until: Option<Stamp>,
        reply: Option<oneshot::Sender<Told>>,
    ) -> u64 {
        let mut state = self.lock();
        if let Some(end) = &state.end {
            let end = end.clone();
            drop(state);
            // A caller that has left does not need the answer.
            let _ = reply.map(|reply| reply.send(Err(end)));
            return 0;
        }
        state.last_id += 1;
        let id = state.last_id;
        if state.link > 0 {
            state.out.push(pb::Request { id, ask: Some(ask.clone()) });
        }
        state.pending.insert(id, Pending { ask, wait_until, reply });
        wake(state);
        id
    }

    /// Nobody waits for this answer any more.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().pending.remove(&id);
    }

    /// Wants a keep-alive to be sent, and optionally to hear when one that was sent after this moment is confirmed.
    /// One who asks after the session's end hears of it at once: its sender is dropped.
    pub(crate) fn keep_alive(&self, waiter: Option<oneshot::Sender<()>>) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        state.wanted.get_or_insert_default().extend(waiter);
        wake(state);
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
    pub(crate) fn connect(self: &Arc<Self>, open: pb::Open, report: Reporter) -> Outbound {
        let now = clock::now();
        let mut state = self.lock();
        state.link += 1;
        state.open = Some(open);
        state.out = state.pending.iter().map(|(id, pending)| pending.again(*id, now)).collect();
        state.wanted.get_or_insert_default();
        Outbound { wire: Arc::clone(self), link: state.link, is_first: true, report }
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
        state.wanted.get_or_insert_default().extend(waiters.into_iter().flatten());
        wake(state);
        reports
    }

    /// Hands out the answers of a frame.
    pub(crate) fn answered(&self, answers: Vec<pb::Answer>) {
        let mut told = Vec::with_capacity(answers.len());
        {
            let mut state = self.lock();
            for answer in answers {
                let pending = state.pending.remove(&answer.id);
                if let (Some(Pending { reply: Some(reply), .. }), Some(outcome)) = (pending, answer.outcome) {
                    told.push((reply, outcome));
                }
            }
        }
        for (reply, outcome) in told {
            // A caller that has left withdraws what it asked for.
            let _ = reply.send(Ok(outcome));
        }
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
        let pending = std::mem::take(&mut state.pending);
        state.wanted = None;
        state.flying.clear();
        drop(state);
        for reply in pending.into_values().filter_map(|pending| pending.reply) {
            let _ = reply.send(Err(end.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds the wire")
    }
}

impl Pending {
    /// The same request for another connection; a wait is shorter by what has passed.
    fn again(&self, id: u64, now: Stamp) -> pb::Request {
        let mut ask = self.ask.clone();
        if let (Ask::Acquire(acquire), Some(until)) = (&mut ask, self.wait_until) {
            acquire.wait_ms = acquire.wait_ms.min(ms(until.since(now)));
        }
        pb::Request { id, ask: Some(ask) }
    }
}

/// Outside the lock: whoever is woken may want it at once.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Makes a keep-alive with what there is to report.
pub(crate) type Reporter = Box<dyn Fn() -> pb::KeepAlive + Send>;

/// What one connection sends: everything that is there, as one frame.
pub(crate) struct Outbound {
    wire: Arc<Wire>,
    link: u64,
    is_first: bool,
    report: Reporter,
}

impl Outbound {
    fn frame(&self, state: &mut State) -> pb::ClientFrame {
        let requests = take_requests(&mut state.out);
        let is_all = state.out.is_empty();
        pb::ClientFrame {
            open: state.open.take(),
            requests,
            keep_alive: state.wanted.take().map(|waiters| self.keep_alive(state, waiters)),
            // Nothing may follow a close.
            close: state.close && is_all,
        }
    }

    fn keep_alive(&self, state: &mut State, waiters: Vec<oneshot::Sender<()>>) -> pb::KeepAlive {
        let mut keep_alive = (self.report)();
        state.last_id += 1;
        keep_alive.id = state.last_id;
        let report = keep_alive.report.clone().unwrap_or_default();
        state.flying.push(Flying { id: keep_alive.id, sent: clock::now(), report, waiters });
        keep_alive
    }
}

/// As many requests as a server takes in one frame; the rest goes into the next one.
fn take_requests(out: &mut Vec<pb::Request>) -> Vec<pb::Request> {
    if out.len() <= SURELY_FIT {
        return std::mem::take(out);
    }
    let mut bytes = 0;
    let fit = out.iter().take_while(|request| {
        bytes += request.encoded_len() + 8;
        bytes <= FRAME_BYTES
    });
    let fit = fit.count().max(1);
    let rest = out.split_off(fit);
    std::mem::replace(out, rest)
}

impl Stream for Outbound {
    type Item = pb::ClientFrame;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<pb::ClientFrame>> {
        let wire = Arc::clone(&self.wire);
        let mut state = wire.lock();
        if state.link != self.link {
            return Poll::Ready(None);
        }
        let is_quiet = state.out.is_empty() && state.wanted.is_none() && !state.close;
        if is_quiet && !self.is_first {
            state.waker = Some(cx.waker().clone());
            state.rested = false;
            return Poll::Pending;
        }
        // The answers of one frame wake many callers, which ask again one after the other. Stepping back once lets all
        // of them ask before the frame is made.
        if !self.is_first && !state.rested {
            state.rested = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_first = false;
        let frame = self.frame(&mut state);
        // What did not fit goes at once.
        state.rested = !state.out.is_empty();
        if frame.close {
            state.link += 1;
        }
        Poll::Ready(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_after_the_end_hears_of_it_at_once() {
        let wire = Wire::default();
        wire.end(&SessionEnd::Ended);
        let (told, mut answer) = oneshot::channel();
        wire.ask(Ask::Release(pb::StreamRelease::default()), None, Some(told));
        assert!(matches!(answer.try_recv(), Ok(Err(SessionEnd::Ended))));
        let (confirmed, mut confirmation) = oneshot::channel();
        wire.keep_alive(Some(confirmed));
        assert!(matches!(confirmation.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
