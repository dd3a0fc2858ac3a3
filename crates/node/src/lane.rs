//! A way to the loop for whoever has many commands under way.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold_types::TenantName;

use crate::cell::Answer;
use crate::config::{PATIENCE, STALL};
use crate::handle::{may_enter, no_progress};
use crate::mailbox::{BatchedCall, CallBatch, Letter, Mailbox, Passage};
use crate::seat::Seat;
use crate::shared::{Message, Shared};
use crate::turns::LONGEST;
use crate::{Call, Sleep, SubmitError, Trail};

/// Brings many commands to the loop at once, and carries many answers back at once: one wake-up of the loop for a whole
/// batch, one wake-up of the caller for everything that one commit answers. What [`crate::Handle::submit`] does for one
/// command, with the same promises, at a fraction of the cost; made for the session stream.
///
/// Each call carries a tag `T` of the caller's choice, and its answer carries the tag back. Commands of one batch are
/// decided in their order, and batches in the order of sending; answers come in any order, since waiters are
/// answered when their turn comes.
///
/// ```no_run
/// # async fn example(handle: leasehold_node::Handle, calls: Vec<(u64, leasehold_node::Call)>) {
/// let mut lane = handle.lane();
/// lane.send(calls);
/// let mut answers = Vec::new();
/// while lane.pending() > 0 {
///     lane.answers(&mut answers).await;
///     for (tag, answer) in answers.drain(..) {
///         // tell the caller of `tag`
///         # drop((tag, answer));
///     }
/// }
/// # }
/// ```
///
/// Dropping a lane is dropping the futures of all its calls: waiting acquires are withdrawn, and grants that nobody
/// could ask for again are given back (A6). Whoever wants waiters to stay keeps the lane and fetches its answers.
#[derive(Debug)]
pub struct Lane<T> {
    seat: Arc<Seat>,
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    /// By the numbers that letters carry.
    calls: Vec<Pending<T>>,
    free: Vec<u32>,
    pending: usize,
    /// Batches that the loop may not have taken yet, oldest first.
    sent: VecDeque<(Arc<Passage>, Vec<u32>)>,
    /// Answered without the loop.
    refused: Vec<(T, SubmitError)>,
    letters: Vec<Letter>,
    /// When stillness is looked into next. Set by the first call, and left to ring when all are answered: the next calls come
    /// soon, and a timer for each of them costs a wake-up of whoever waits for timers.
    alarm: Option<Alarm>,
}

struct Alarm(Sleep);

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Alarm")
    }
}

#[derive(Debug)]
enum Pending<T> {
    Free,
    Waits(Waits<T>),
    /// The caller was told that the outcome is unknown; a late answer frees the place.
    GivenUp {
        given_back_to: Option<TenantName>,
    },
}

#[derive(Debug)]
struct Waits<T> {
    tag: T,
    deadline: Duration,
    /// In a queue it has nothing to lose by staying there; its wait ends by itself.
    waits: bool,
    /// Whose lease is given back when the grant meets nobody.
    given_back_to: Option<TenantName>,
}

impl<T> Lane<T> {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        let shared = seat.shared();
        let mailbox = Arc::new(Mailbox::new(seat.places().are_here()));
        Self {
            seat,
            shared,
            mailbox,
            calls: Vec::new(),
            free: Vec::new(),
            pending: 0,
            sent: VecDeque::new(),
            refused: Vec::new(),
            letters: Vec::new(),
            alarm: None,
        }
    }

    /// Calls that were sent and whose answers were not fetched yet.
    pub fn pending(&self) -> usize {
        self.pending + self.refused.len()
    }

    /// The tags of the calls whose answers were not fetched yet, in no order; without those that were refused at once.
    pub fn tags(&self) -> impl Iterator<Item = &T> {
        self.calls.iter().filter_map(|call| match call {
            Pending::Waits(waits) => Some(&waits.tag),
            Pending::Free | Pending::GivenUp { .. } => None,
        })
    }

    /// Sends these calls as one batch; more than 256 as several, so that the calls of other tenants come in between. What
    /// cannot be taken is answered by the next [`Lane::answers`].
    pub fn send(&mut self, calls: impl IntoIterator<Item = (T, Call)>) {
        let calls = calls.into_iter();
        let mut sending = self.begin(calls.size_hint().0);
        for (tag, call) in calls {
            sending.add(tag, call, None);
        }
        sending.send();
    }

    /// Begins to send about so many calls, which are then added one by one.
    pub fn begin(&mut self, calls: usize) -> Sending<'_, T> {
        self.shared = self.seat.shared();
        let arrived = self.shared.clock.monotonic();
        let entry = may_enter(&self.shared, arrived);
        let batch = Vec::with_capacity(calls.min(LONGEST));
        Sending { lane: self, arrived, entry, full: Vec::new(), batch }
    }

    fn send_batch(&mut self, calls: Vec<BatchedCall>) {
        let passage = Arc::new(Passage::default());
        self.sent.push_back((Arc::clone(&passage), calls.iter().map(|(place, ..)| *place).collect()));
        let batch = CallBatch::new(calls, Arc::clone(&self.mailbox), passage);
        // A batch that meets no loop answers for itself.
        let _ = self.shared.queue.send(Message::Batch(batch));
    }

    /// Waits until something is answered, and adds everything that is answered by then to `out`. With nothing pending it
    /// waits for ever. Cancel-safe.
    pub async fn answers(&mut self, out: &mut Vec<(T, Answer)>) {
        poll_fn(|cx| self.poll_answers(cx, out)).await;
    }

    /// See [`Lane::answers`].
    pub fn poll_answers(&mut self, cx: &mut Context<'_>, out: &mut Vec<(T, Answer)>) -> Poll<()> {
        let before = out.len();
        out.extend(self.refused.drain(..).map(|(tag, error)| (tag, Err(error))));
        loop {
            // Until it is empty and will wake us: letters to calls that were given up answer nobody.
            while out.len() == before && self.mailbox.poll(cx, &mut self.letters).is_ready() {
                self.read(out);
            }
            if out.len() > before {
                return Poll::Ready(());
            }
            if self.poll_alarm(cx).is_pending() {
                return Poll::Pending;
            }
            self.after_silence(out);
        }
    }

    fn admit(&self, call: &Call) -> Result<(), SubmitError> {
        if self.shared.admit(call) {
            return Ok(());
        }
        self.shared.observer.shed();
        Err(SubmitError::Overloaded)
    }

    fn place(&mut self, tag: T, call: &Call, arrived: Duration) -> u32 {
        let wait_ms = call.wait_ms();
        let pending = Pending::Waits(Waits {
            tag,
            deadline: arrived + Duration::from_millis(wait_ms) + PATIENCE,
            waits: wait_ms > 0,
            given_back_to: call.is_given_back_unheard().then(|| call.tenant.clone()),
        });
        self.pending += 1;
        match self.free.pop() {
            Some(place) => {
                self.calls[place as usize] = pending;
                place
            }
            None => {
                self.calls.push(pending);
                u32::try_from(self.calls.len() - 1).expect("the queue is shorter than 2^32")
            }
        }
    }

    /// Frees a place.
    fn vacate(&mut self, place: u32) -> Pending<T> {
        self.free.push(place);
        std::mem::replace(&mut self.calls[place as usize], Pending::Free)
    }

    fn read(&mut self, out: &mut Vec<(T, Answer)>) {
        while self.sent.front().is_some_and(|(passage, _)| passage.is_taken()) {
            self.sent.pop_front();
        }
        let mut letters = std::mem::take(&mut self.letters);
        for (place, answer) in letters.drain(..) {
            match self.vacate(place) {
                Pending::Waits(waits) => {
                    self.pending -= 1;
                    out.push((waits.tag, answer));
                }
                Pending::GivenUp { given_back_to } => self.give_back(given_back_to, &answer),
                Pending::Free => unreachable!("a call is answered once"),
            }
        }
        self.letters = letters;
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.pending == 0 {
            return Poll::Pending;
        }
        let clock = &self.shared.clock;
        let alarm = self.alarm.get_or_insert_with(|| Alarm(clock.sleep_until(clock.monotonic() + STALL / 4)));
        let rung = alarm.0.as_mut().poll(cx);
        if rung.is_ready() {
            self.alarm = None;
        }
        rung
    }

    /// Gives up what is hopeless: nothing moves (N5), or the deadline has come (L5).
    fn after_silence(&mut self, out: &mut Vec<(T, Answer)>) {
        let now = self.shared.clock.monotonic();
        let stalled = self.shared.is_stalled(now);
        for (passage, places) in std::mem::take(&mut self.sent) {
            let late = |place: &u32| matches!(&self.calls[*place as usize], Pending::Waits(call) if now >= call.deadline);
            if !stalled && !places.iter().any(late) {
                self.sent.push_back((passage, places));
            } else if passage.leave() {
                let not_taken =
                    || SubmitError::StoreUnavailable("the command was not taken in time".to_owned());
                let error = if stalled { no_progress() } else { not_taken() };
                self.call_back(&places, &error, out);
            }
        }
        for place in 0..self.calls.len() {
            let hopeless = matches!(&self.calls[place], Pending::Waits(call)
                if (stalled && !call.waits) || now >= call.deadline);
            if hopeless {
                self.give_up(place, out);
            }
        }
    }

    /// Nothing happened to these, and nothing will.
    fn call_back(&mut self, places: &[u32], error: &SubmitError, out: &mut Vec<(T, Answer)>) {
        for place in places {
            if let Pending::Waits(call) = self.vacate(*place) {
                self.pending -= 1;
                out.push((call.tag, Err(error.clone())));
            }
        }
    }

    /// The loop has it; what comes of it is not waited for.
    fn give_up(&mut self, place: usize, out: &mut Vec<(T, Answer)>) {
        let number = u32::try_from(place).expect("places are counted in 32 bits");
        let Pending::Waits(call) = std::mem::replace(&mut self.calls[place], Pending::Free) else { return };
        self.calls[place] = Pending::GivenUp { given_back_to: call.given_back_to };
        self.pending -= 1;
        if call.waits {
            self.tell(Message::Forsake(Arc::clone(&self.mailbox), Some(number)));
        }
        let error = SubmitError::OutcomeUnknown("the commit was not confirmed in time".to_owned());
        out.push((call.tag, Err(error)));
    }

    fn give_back(&self, to: Option<TenantName>, answer: &Answer) {
        let lease_id = answer.as_ref().ok().and_then(|durable| durable.granted_lease());
        if let (Some(tenant), Some(lease_id)) = (to, lease_id) {
            self.tell(Message::GiveBack(tenant, lease_id));
        }
    }

    fn tell(&self, message: Message) {
        // A loop that has stopped has nothing to withdraw or give back.
        let _ = self.shared.queue.send(message);
    }
}

/// Calls that are about to be sent; see [`Lane::begin`]. They are when this is dropped, so that none of them is forgotten.
#[derive(Debug)]
pub struct Sending<'a, T> {
    lane: &'a mut Lane<T>,
    arrived: Duration,
    /// Whether anything is taken at all.
    entry: Result<(), SubmitError>,
    full: Vec<Vec<BatchedCall>>,
    batch: Vec<BatchedCall>,
}

impl<T> Sending<'_, T> {
    /// Adds a call; where there is a trail it is noted there how it fares.
    pub fn add(&mut self, tag: T, call: Call, trail: Option<Arc<Trail>>) {
        if let Err(error) = self.entry.clone().and_then(|()| self.lane.admit(&call)) {
            self.lane.refused.push((tag, error));
            return;
        }
        if self.batch.len() == LONGEST {
            self.full.push(std::mem::take(&mut self.batch));
        }
        self.batch.push((self.lane.place(tag, &call, self.arrived), call, trail));
    }

    /// Sends them.
    pub fn send(self) {
        drop(self);
    }
}

impl<T> Drop for Sending<'_, T> {
    /// All at once, so that the loop knows of all of them when it halves what waits.
    fn drop(&mut self) {
        let (full, batch) = (std::mem::take(&mut self.full), std::mem::take(&mut self.batch));
        for calls in full.into_iter().chain(Some(batch).filter(|rest| !rest.is_empty())) {
            self.lane.send_batch(calls);
        }
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        let letters = self.mailbox.close();
        for (place, answer) in letters {
            match self.vacate(place) {
                Pending::Waits(Waits { given_back_to, .. }) | Pending::GivenUp { given_back_to } => {
                    self.give_back(given_back_to, &answer);
                    self.pending = self.pending.saturating_sub(1);
                }
                Pending::Free => {}
            }
        }
        for (passage, _) in std::mem::take(&mut self.sent) {
            // One that the loop has is forsaken below.
            passage.leave();
        }
        if self.pending > 0 {
            self.tell(Message::Forsake(Arc::clone(&self.mailbox), None));
        }
    }
}
