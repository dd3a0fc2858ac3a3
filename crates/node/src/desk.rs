//! The loop's desk: the state, the calls that wait for it, and the time it decides by. It takes and delivers; it never
//! waits for the journal, so that it can go on while an append is in flight.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Command, Reply, Ticket};
use leasehold_types::{LeaseId, Slot, TenantName};
use tokio::sync::mpsc;

use crate::cell::Asker;
use crate::config::{ANNOUNCE_EVERY, HEARTBEAT, TAKE_MOST, TICK_MOST};
use crate::happened;
use crate::mailbox::{CallBatch, Mailbox, Place};
use crate::post::Post;
use crate::serving_time::ServingTime;
use crate::shared::{Message, Phase, Shared};
use crate::state::{CommittedBatch, Delivery, State};
use crate::ticket_hash::TicketHasher;
use crate::turns::Turns;
use crate::{Call, Durable, Happened, Settled, Sleep, StopReason, SubmitError, Trail};

/// See the module.
pub(crate) struct Desk {
    pub(crate) state: State,
    pub(crate) shared: Arc<Shared>,
    inbox: mpsc::UnboundedReceiver<Message>,
    time: ServingTime,
    /// Who waits for which ticket. Only looked up by key, so that its order never matters.
    calls: HashMap<Ticket, Waiting, BuildHasherDefault<TicketHasher>>,
    last_ticket: u64,
    /// Taken and undelivered decisions beyond which nothing more is taken.
    most_backlog: usize,
    /// Reused from batch to batch.
    deliveries: Vec<Delivery>,
    /// Reused from batch to batch.
    post: Post,
    /// Whose turn it is.
    turns: Turns,
    /// The newest work with the journal.
    settled: Option<Settled>,
    alarm: Option<(Duration, Sleep)>,
    next_heartbeat: Duration,
    next_announcement: Duration,
    is_closing: bool,
    /// The ticket after which no more is taken in this round.
    last_of_round: u64,
    /// What is left of a batch that was cut: goes before everything else.
    rest: Option<CallBatch>,
    /// Whether the last round was half a one.
    was_half: bool,
    /// Whether the journal has room for grants.
    room: bool,
    /// Whether work with the journal was done of which nobody was told yet.
    has_news: bool,
    /// The commit among it, and how long it took.
    commit: Option<(CommittedBatch, Duration)>,
}

/// A caller that waits.
struct Waiting {
    back: Back,
    /// Whose lease is given back when the grant meets nobody.
    given_back_to: Option<TenantName>,
    /// Where it is noted how the call fares.
    trail: Option<Arc<Trail>>,
}

/// The way back to a caller.
enum Back {
    /// One that waits for this alone.
    Cell(Asker),
    /// A lane.
    Lane(Place),
}

impl Desk {
    pub(crate) fn new(
        state: State,
        shared: Arc<Shared>,
        inbox: mpsc::UnboundedReceiver<Message>,
        time: ServingTime,
        most_backlog: usize,
    ) -> Self {
        Self {
            state,
            shared,
            inbox,
            time,
            calls: HashMap::default(),
            last_ticket: 0,
            most_backlog,
            deliveries: Vec::new(),
            post: Post::default(),
            turns: Turns::default(),
            settled: None,
            alarm: None,
            next_heartbeat: Duration::ZERO,
            next_announcement: Duration::ZERO,
            is_closing: false,
            last_of_round: 0,
            rest: None,
            was_half: false,
            room: true,
            has_news: false,
            commit: None,
        }
    }

    /// Looks at the clocks; after a pause or a suspension nothing leaves before the epoch is confirmed anew (R3, N3).
    pub(crate) fn look(&mut self) {
        let reading = self.shared.clock.read();
        let look = self.time.look(reading);
        if let Some(gap) = look.paused {
            self.shared.observer.paused(gap);
        }
        if look.paused.is_some() || look.suspended {
            self.state.distrust();
        }
        self.next_heartbeat = reading.monotonic + HEARTBEAT;
        if reading.monotonic >= self.next_announcement {
            self.next_announcement = reading.monotonic + ANNOUNCE_EVERY;
            self.shared.ring.announce();
        }
    }

    /// Takes what waits, in order, then lets time do its work: a renewal that is here goes before the expiry it averts.
    pub(crate) fn round(&mut self, first: Option<Message>) {
        self.was_half = false;
        self.look();
        self.take_some(first, TAKE_MOST);
        self.let_time_work();
    }

    /// The round before an append: of so many that wait, half is enough to begin with. Callers that were all answered by
    /// one commit ask again all at once; then everybody stands still while somebody works, for ever: the journal while
    /// the loop decides, the loop while an engine commits or while server and clients carry answers and questions.
    ///
    /// Time has to wait for the other half, in which there may be a renewal; so there are never two in succession.
    pub(crate) fn half_round(&mut self, first: Option<Message>, halved: &RangeInclusive<usize>) {
        let waiting = self.shared.queued();
        if self.was_half || !halved.contains(&waiting) || !self.state.is_idle() {
            return self.round(first);
        }
        self.was_half = true;
        self.look();
        let before = self.last_ticket;
        self.take_some(first, waiting as u64 / 2);
        if self.last_ticket == before {
            // What waits is counted before it is here: it is to be halved when it comes.
            self.was_half = false;
            self.let_time_work();
        }
    }

    fn let_time_work(&mut self) {
        if !self.is_closing {
            self.state.tick(self.time.due(), TICK_MOST);
        }
    }

    fn take_some(&mut self, first: Option<Message>, most: u64) {
        self.last_of_round = self.last_ticket + most;
        if let Some(rest) = self.rest.take() {
            self.take_batch(rest);
        }
        if let Some(message) = first {
            self.hear(message);
        }
        while self.last_ticket < self.last_of_round && !self.is_full() {
            match self.next_message() {
                Some(message) => self.take(message),
                None => break,
            }
        }
    }

    /// Takes a message at once, or puts it in line when it is not its turn.
    fn hear(&mut self, message: Message) {
        let waits = !self.turns.is_in_order() || self.turns.is_change(&message);
        let message = if waits { self.turns.put(message) } else { Some(message) };
        if let Some(message) = message {
            self.take(message);
        }
    }

    /// What is taken next: in the order of arrival with one tenant, in turn with several. Whoever has had a share is passed
    /// by everybody who waits behind it.
    fn next_message(&mut self) -> Option<Message> {
        if self.turns.is_in_order() {
            let message = self.inbox.try_recv().ok()?;
            if !self.turns.is_change(&message) {
                return Some(message);
            }
            let call = self.turns.put(message);
            debug_assert!(call.is_none(), "only a call changes the tenant");
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.hear(message);
        }
        self.turns.next()
    }

    /// What is taken from now on is of the next batch.
    pub(crate) fn begin_batch(&mut self) {
        self.turns.begin_batch();
    }

    /// Waits for a message, or for the time of the next look: `None`. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> Option<Message> {
        self.shared.ring.announce();
        // A node that resigns ends nothing any more: what is due must not keep it awake while its last append is under way.
        let next = self.state.next_deadline().filter(|_| !self.is_closing);
        let deadline = next.map(|deadline| self.time.monotonic_at(deadline));
        let at = deadline.map_or(self.next_heartbeat, |deadline| deadline.min(self.next_heartbeat));
        if self.alarm.as_ref().is_none_or(|(set_to, _)| *set_to != at) {
            self.alarm = Some((at, self.shared.clock.sleep_until(at)));
        }
        let (_, alarm) = self.alarm.as_mut().expect("it was just set");
        let is_full = self.state.backlog() >= self.most_backlog;
        if (self.rest.is_some() || self.turns.can_go_on()) && !is_full {
            return None;
        }
        tokio::select! {
            biased;
            Some(message) = self.inbox.recv(), if !is_full => Some(message),
            () = alarm => {
                self.alarm = None;
                None
            }
        }
    }

    /// The monotonic clock, now.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.read().monotonic
    }

    /// Whether the journal has room for grants; asked of it before deciding.
    pub(crate) fn set_room(&mut self, room: bool) {
        self.room = room;
        self.state.set_room(room);
    }

    /// Keeps a commit until everybody is told.
    pub(crate) fn committed(&mut self, batch: CommittedBatch, took: Duration) {
        self.commit = Some((batch, took));
    }

    /// Whether work with the journal was done of which nobody was told yet.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Tells everybody what may be told now: watchers and observers of the last commit, then whoever asks for the node's
    /// state, and at last the callers, so that whoever has an answer finds it in the sizes too.
    pub(crate) fn tell(&mut self) {
        self.has_news = false;
        if let Some((batch, took)) = self.commit.take() {
            self.show(batch, took);
        }
        self.publish();
        self.deliver();
    }

    /// Publishes what a node says of itself.
    pub(crate) fn publish(&mut self) {
        let counts = self.state.durable_counts();
        self.shared.publish(self.state.tail().slot, &counts, self.room);
        self.shared.set_credentials(self.state.table().journaled().credentials());
        self.shared.set_filled_by(self.turns.longest());
    }

    /// Ends after this long.
    pub(crate) fn pause(&self, length: Duration) -> Sleep {
        self.shared.clock.sleep_until(self.shared.clock.read().monotonic + length)
    }

    /// Work with the journal is done, of which answers that leave now may tell.
    pub(crate) fn settle(&mut self, slot: Option<Slot>, began: Duration, ended: Duration) {
        self.settled = Some(Settled { slot, began, ended });
        self.has_news = true;
    }

    /// Shows a commit to watchers and observers.
    fn show(&mut self, batch: CommittedBatch, took: Duration) {
        let CommittedBatch { slot, facts, bytes, events } = batch;
        self.shared.observer.committed(facts, bytes, took);
        if !events.is_empty() {
            let happened = happened::of_slot(slot, events);
            self.shared.observer.events(&happened);
            self.shared.ring.push(happened);
        }
    }

    /// Hands out the answers that may leave now.
    fn deliver(&mut self) {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        self.state.deliver(&mut deliveries);
        let (mut live, mut post) = (Vec::new(), std::mem::take(&mut self.post));
        for delivery in deliveries.drain(..) {
            match delivery {
                Delivery::Reply(ticket, durable) => self.reply(ticket, durable, &mut post),
                Delivery::Live(at, event) => live.push(Happened { id: None, at, event }),
            }
        }
        if !live.is_empty() {
            let live: Arc<[Happened]> = live.into();
            self.shared.observer.events(&live);
            self.shared.ring.push_live(live);
        }
        for (tenant, lease_id) in post.send() {
            self.give_back(tenant, lease_id);
        }
        self.post = post;
        self.deliveries = deliveries;
    }

    fn reply(&mut self, ticket: Ticket, durable: Durable<Reply>, post: &mut Post) {
        let Some(waiting) = self.calls.remove(&ticket) else { return };
        if let Some(trail) = &waiting.trail {
            trail.settled(self.settled);
        }
        match waiting.back {
            Back::Lane(place) => post.add(place, durable, waiting.given_back_to),
            Back::Cell(asker) => {
                let lease_id = durable.granted_lease();
                if asker.answer(Ok(durable)).is_err()
                    && let (Some(lease_id), Some(tenant)) = (lease_id, waiting.given_back_to)
                {
                    self.give_back(tenant, lease_id);
                }
            }
        }
    }

    /// Stops taking: what is still in the queue is turned away, and the last fact says that we resign (J16).
    pub(crate) fn close(&mut self) {
        self.is_closing = true;
        self.shared.set_phase(Phase::Closing);
        self.turn_away(&StopReason::Shutdown);
        self.state.resign();
    }

    /// Whether [`Desk::close`] was asked for.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Answers everybody who still waits, and ends every stream (N2).
    pub(crate) fn stop(mut self, reason: &StopReason) {
        self.shared.set_phase(Phase::Stopped);
        self.shared.ring.close();
        self.turn_away(reason);
        for (ticket, error) in self.state.stop(reason) {
            if let Some(waiting) = self.calls.remove(&ticket) {
                waiting.back.answer(error);
            }
        }
        // What remains waits for a resource; nothing was decided for it.
        for (_, waiting) in self.calls.drain() {
            waiting.back.answer(reason.nothing_happened());
        }
    }

    fn is_full(&self) -> bool {
        self.is_closing || self.state.backlog() >= self.most_backlog
    }

    fn turn_away(&mut self, reason: &StopReason) {
        self.inbox.close();
        let mut waiting: Vec<_> = self.rest.take().map(Message::Batch).into_iter().collect();
        waiting.extend(self.turns.drain());
        waiting.extend(std::iter::from_fn(|| self.inbox.try_recv().ok()));
        for message in waiting {
            match message {
                Message::Call(_, asker, _) => drop(asker.answer(Err(reason.nothing_happened()))),
                Message::Batch(batch) => batch.turn_away(reason),
                Message::Withdraw(..) | Message::Forsake(..) | Message::GiveBack(..) | Message::Shutdown => {}
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Call(call, asker, trail) => self.take_call(call, asker, trail),
            Message::Batch(batch) => self.take_batch(batch),
            Message::Forsake(mailbox, place) => self.forsake(&mailbox, place),
            Message::Withdraw(tenant, waiter) => self.withdraw(tenant, waiter),
            Message::GiveBack(tenant, lease_id) => self.give_back(tenant, lease_id),
            Message::Shutdown => self.close(),
        }
    }

    fn take_call(&mut self, call: Call, asker: Asker, trail: Option<Arc<Trail>>) {
        self.shared.taken(1);
        let ticket = self.next_ticket();
        if !asker.take(ticket) {
            return;
        }
        self.decide(ticket, call, Back::Cell(asker), trail);
    }

    /// Takes a batch, or in half a round as much of it as is still to be taken.
    fn take_batch(&mut self, mut batch: CallBatch) {
        if self.was_half {
            let most =
                usize::try_from(self.last_of_round.saturating_sub(self.last_ticket)).unwrap_or(usize::MAX);
            self.rest = batch.cut_after(most.max(1));
        }
        self.shared.taken(batch.len());
        let (calls, mailbox) = batch.take();
        for (number, call, trail) in calls {
            let ticket = self.next_ticket();
            self.decide(ticket, call, Back::Lane(Place::new(Arc::clone(&mailbox), number)), trail);
        }
    }

    fn decide(&mut self, ticket: Ticket, call: Call, back: Back, trail: Option<Arc<Trail>>) {
        let given_back_to = call.is_given_back_unheard().then(|| call.tenant.clone());
        // The clock is read for those alone who want to know.
        let noted = trail.as_ref().map(|trail| (Arc::clone(trail), self.monotonic()));
        self.calls.insert(ticket, Waiting { back, given_back_to, trail });
        self.state.take(ticket, call, self.time.now());
        if let Some((trail, from)) = noted {
            trail.decided(from, self.monotonic());
        }
    }

    /// Withdraws the waiting acquires of a lane, in the order in which they came.
    fn forsake(&mut self, mailbox: &Arc<Mailbox>, number: Option<u32>) {
        let is_its =
            |waiting: &Waiting| matches!(&waiting.back, Back::Lane(place) if place.is_in(mailbox, number));
        let mut tickets: Vec<_> =
            self.calls.iter().filter(|(_, waiting)| is_its(waiting)).map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        for ticket in tickets {
            // The ticket alone says who is meant.
            self.withdraw(TenantName::default_tenant(), ticket);
        }
    }

    /// The caller of a waiting acquire is gone. A grant that was decided for it meanwhile is given back when it is
    /// delivered to nobody.
    fn withdraw(&mut self, tenant: TenantName, waiter: Ticket) {
        let waiting = self.state.counts().waiters;
        self.take_own(tenant, Command::Withdraw { waiter });
        let was_waiting = self.state.counts().waiters < waiting;
        if was_waiting {
            self.calls.remove(&waiter);
        }
    }

    /// The grant met nobody, who could never ask for it again: it is given back at once (A6).
    fn give_back(&mut self, tenant: TenantName, lease_id: LeaseId) {
        if !self.is_closing {
            self.shared.observer.given_back();
            self.take_own(tenant, Command::Release { lease_id });
        }
    }

    /// A command of the loop itself; its reply meets nobody.
    fn take_own(&mut self, tenant: TenantName, command: Command) {
        let ticket = self.next_ticket();
        self.state.take(ticket, Call { tenant, identity: None, key: None, command }, self.time.now());
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }
}

impl Back {
    fn answer(self, error: SubmitError) {
        match self {
            // Somebody who has left needs no error.
            Self::Cell(asker) => drop(asker.answer(Err(error))),
            Self::Lane(place) => place.refuse(error),
        }
    }
}
