//! The loop's desk: the state, the calls that wait for it, and the time it decides by. It takes and tells; it never
//! waits for the journal, so that it can go on while an append is in flight.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Ticket;
use leasehold_types::{Awake, TenantName};
use tokio::sync::mpsc;

use crate::cell::Asker;
use crate::config::{ANNOUNCE_EVERY, HALVED, HEARTBEAT, LONG_COMMIT, TAKE_MOST, TICK_MOST};
use crate::mailbox::{CallBatch, Place};
use crate::post::Post;
use crate::serving_time::ServingTime;
use crate::shared::{Message, Phase, Shared};
use crate::state::{CommittedBatch, State};
use crate::ticket_hash::TicketHasher;
use crate::turns::Turns;
use crate::{Settled, Sleep, StopReason, SubmitError, Trail, awake};

mod taking;
mod telling;

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
    post: Post,
    /// Whose turn it is.
    turns: Turns,
    /// The newest work with the journal.
    settled: Option<Settled>,
    alarm: Option<(Duration, Sleep)>,
    /// Whether it stays awake when it waits; `None`: never.
    awake: Option<Awake>,
    /// How long commits take, the newest counting most.
    commits_take: Duration,
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
        turns: Turns,
        awake: Option<Awake>,
    ) -> Self {
        Self {
            state,
            shared,
            inbox,
            time,
            calls: HashMap::default(),
            last_ticket: 0,
            most_backlog,
            post: Post::default(),
            turns,
            settled: None,
            alarm: None,
            awake,
            commits_take: Duration::ZERO,
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

    /// Looks again if a millisecond is over: deciding takes time, and what is taken next may have come meanwhile. Its deadline
    /// counts from after that (S9).
    fn look_again(&mut self) {
        if self.time.is_over(self.monotonic()) {
            self.look();
        }
    }

    /// Takes what waits, in order, then lets time do its work: a renewal that is here goes before the expiry it averts. How
    /// many commands it took.
    pub(crate) fn round(&mut self, first: Option<Message>) -> u64 {
        let before = self.last_ticket;
        self.was_half = false;
        self.look();
        self.take_some(first, TAKE_MOST);
        self.let_time_work();
        self.last_ticket - before
    }

    /// Whether somebody has come since the last round.
    pub(crate) fn has_mail(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// How many lanes the last answers were for.
    pub(crate) fn lanes_told(&self) -> usize {
        self.post.woken()
    }

    /// The round before an append to an engine: of so many that wait, half is enough to begin with. Callers that were all
    /// answered by one commit ask again all at once; then everybody stands still while somebody works, for ever: the engine
    /// while the loop decides, the loop while the engine commits.
    ///
    /// Commits that take long are another matter: two of them, one after the other, take longer than one and all that is done
    /// between two, and cost the engine twice.
    ///
    /// Time has to wait for the other half, in which there may be a renewal; so there are never two in succession.
    pub(crate) fn half_round(&mut self, first: Option<Message>) {
        let waiting = self.shared.queued();
        let is_worth_it = waiting >= HALVED && self.commits_take < LONG_COMMIT;
        if self.was_half || !is_worth_it || !self.state.is_idle() {
            self.round(first);
            return;
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
        let clock = &*self.shared.clock;
        let begun = clock.monotonic();
        let message = tokio::select! {
            biased;
            Some(message) = self.inbox.recv(), if !is_full => Some(message),
            () = alarm => {
                self.alarm = None;
                None
            }
            () = awake::stay(self.awake.as_mut(), clock) => None,
        };
        if let Some(awake) = &mut self.awake {
            // Those who call from elsewhere have threads of their own to wake, and need the cores for them.
            let is_from_beside = matches!(&message, Some(Message::Batch(batch)) if batch.is_from_beside());
            awake.woken(is_from_beside && clock.monotonic().saturating_sub(begun) <= awake::SOON);
        }
        message
    }

    /// The monotonic clock, now.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// Whether the journal has room for grants; asked of it before deciding.
    pub(crate) fn set_room(&mut self, room: bool) {
        self.room = room;
        self.state.set_room(room);
    }

    /// Ends after this long.
    pub(crate) fn pause(&self, length: Duration) -> Sleep {
        self.shared.clock.sleep_until(self.shared.clock.monotonic() + length)
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
