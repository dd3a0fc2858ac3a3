//! The loop without threads, clocks or IO: what was decided, what is on its way, who waits for what.
//!
//! The driver hands in commands and time, asks for the next [`Work`] (at most one piece is in flight), reports its
//! outcome, and carries away what may be told. A simulator does the same. What it guarantees, whoever drives it:
//!
//! 1. A reply leaves only when every fact decided before or with it is durable (N1): also a refusal and a read.
//! 2. A reply that needs a confirmation leaves only after an append or confirmation that *began* after its command was
//!    taken (R1).
//! 3. The facts of the journal are the facts decided, in order, cut into batches anywhere: every prefix of them is
//!    a lawful state.
//! 4. A batch whose outcome is unknown is given out again with the same bytes for the same slot (J3).

mod bodies;
mod outbox;
mod work;

use leasehold_core::{
    ClusterSecret, Counts, Decision, Event, EventAt, Fact, LockTable, Request, Ticket, TookOver,
};
use leasehold_journal::{Batch, BatchId, Chained, Confirmation, Limits, Outcome, Tail};
use leasehold_types::{Epoch, Nonce, Now, Slot, Time, WallTime};

use crate::{Call, Durable, StopReason, SubmitError};
use bodies::{Bodies, Body};
use outbox::{News, Outbox};

pub use work::{CommittedBatch, Delivery, Next, Work};

/// Work in flight.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it, and it moves twice a batch")]
enum Flight {
    /// `counts` are those of the table if the batch has everything that was decided until then.
    Append {
        batch: Chained,
        body: Body,
        counts: Option<Counts>,
        round: u64,
        attempts: u32,
    },
    Confirm {
        round: u64,
    },
}

/// See the module.
#[derive(Debug)]
pub struct State {
    table: LockTable,
    epoch: Epoch,
    nonce: Nonce,
    tail: Tail,
    bodies: Bodies,
    outbox: Outbox,
    flight: Option<Flight>,
    /// Facts that are durable, counted from the start as [`Bodies::decided`] counts them.
    durable: u64,
    /// Appends and confirmations are *rounds*, numbered as they begin.
    begun: u64,
    /// The newest round that proved the epoch current.
    confirmed: u64,
    /// Nothing leaves before this round is confirmed: the node has reason not to trust itself (R3, N3).
    trusted_from: u64,
    durable_counts: Counts,
    /// Empty between decisions, and used again for each; so is the next.
    decision: Decision,
    live: Vec<(WallTime, Event)>,
}

impl State {
    /// A loop over a restored table, after `tail`, in an epoch claimed with `nonce`.
    pub fn new(table: LockTable, epoch: Epoch, nonce: Nonce, tail: Tail, limits: Limits) -> Self {
        let (durable_counts, format) = (table.counts(), table.journaled().format());
        Self {
            table,
            epoch,
            nonce,
            tail,
            bodies: Bodies::new(limits.body_bytes, format),
            outbox: Outbox::default(),
            flight: None,
            durable: 0,
            begun: 0,
            confirmed: 0,
            trusted_from: 0,
            durable_counts,
            decision: Decision::default(),
            live: Vec::new(),
        }
    }

    /// Takes a command and decides it. The ticket must be larger than every earlier one.
    pub fn take(&mut self, ticket: Ticket, call: Call, now: Now) {
        let Call { tenant, identity, key, command } = call;
        let mut decision = std::mem::take(&mut self.decision);
        self.table.decide_into(Request { ticket, tenant, identity, key, command }, now, &mut decision);
        self.decided(&mut decision, now.wall);
        self.decision = decision;
    }

    /// Ends what has reached its deadline, at most about `most` facts of it. True if something was due.
    pub fn tick(&mut self, now: Now, most: usize) -> bool {
        let due = self.next_deadline().is_some_and(|deadline| deadline <= now.time);
        if due {
            let mut decision = self.table.tick(now, most);
            self.decided(&mut decision, now.wall);
        }
        due
    }

    /// When [`State::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        self.table.next_deadline()
    }

    /// Says whether the journal has room for grants; asked of it before deciding.
    pub fn set_room(&mut self, room: bool) {
        self.table.set_room(room);
    }

    /// Something may have happened unseen: nothing leaves until the epoch is confirmed anew.
    pub fn distrust(&mut self) {
        self.trusted_from = self.begun + 1;
    }

    /// Makes `Resigned` the last fact (J16). Nothing may be taken afterwards.
    pub fn resign(&mut self) {
        self.table.mark(&Fact::Resigned);
        self.bodies.push(&Fact::Resigned);
    }

    /// Begins an empty journal in this format, with its first batch: there is no older node that could read it (N10).
    pub fn found(&mut self, format: u8, at: WallTime) {
        if format > self.table.journaled().format() {
            let fact = Fact::FormatRaised { format, by: None, at };
            self.table.mark(&fact);
            self.bodies.hold(fact);
        }
    }

    /// Makes the secret that nodes prove themselves to each other with (N7), if they have none.
    pub fn make_secret(&mut self, secret: ClusterSecret) {
        let journaled = self.table.journaled();
        let fact = Fact::SecretMade(secret);
        if journaled.secret().is_none() && journaled.format() >= fact.format() {
            self.table.mark(&fact);
            self.bodies.push(&fact);
        }
    }

    /// Says who took the journal over and where it is reached: the first fact of an epoch, so before anything is taken.
    pub fn took_over(&mut self, node: &str, url: &str) {
        let took_over = TookOver { epoch: self.epoch, node: node.into(), url: url.into() };
        let fact = Fact::TookOver(Box::new(took_over));
        self.table.mark(&fact);
        self.bodies.push(&fact);
    }

    /// What is to be done next; `None` while something is in flight, and when there is nothing to do.
    pub fn next_work(&mut self) -> Option<Work> {
        if self.flight.is_some() {
            return None;
        }
        if let Some(body) = self.bodies.pop() {
            return Some(Work::Append(self.begin_append(body)));
        }
        let needed = self.trusted_from.max(self.outbox.round_needed());
        if needed <= self.confirmed {
            return None;
        }
        self.begun += 1;
        self.flight = Some(Flight::Confirm { round: self.begun });
        Some(Work::Confirm)
    }

    /// Takes the outcome of the append in flight.
    ///
    /// # Panics
    /// If no append is in flight: the driver's mistake.
    pub fn appended(&mut self, outcome: Outcome) -> Next {
        let Some(Flight::Append { batch, body, counts, round, attempts }) = self.flight.take() else {
            panic!("no append is in flight");
        };
        let (next, attempts) = match outcome {
            Outcome::Committed => {
                self.durable_counts = counts.unwrap_or(self.durable_counts);
                return Next::Committed(self.committed(batch, body, round));
            }
            Outcome::Unknown(detail) => (Next::Again(detail), attempts + 1),
            Outcome::Fenced => (Next::Stop(StopReason::Fenced), attempts),
            Outcome::Conflict(found) => (Next::Stop(StopReason::Conflict(found)), attempts),
            Outcome::Failed(detail) => (Next::Stop(StopReason::JournalFailed(detail)), attempts),
            Outcome::Regressed(detail) => (Next::Stop(StopReason::Halted(detail)), attempts),
        };
        // It stays in flight: to be tried again, or so that `stop` knows what is in doubt.
        self.flight = Some(Flight::Append { batch, body, counts, round, attempts });
        next
    }

    /// Takes the outcome of the confirmation in flight.
    ///
    /// # Panics
    /// If no confirmation is in flight: the driver's mistake.
    pub fn confirmed(&mut self, confirmation: Confirmation) -> Next {
        let Some(Flight::Confirm { round }) = self.flight else { panic!("no confirmation is in flight") };
        match confirmation {
            Confirmation::Current => {
                self.flight = None;
                self.confirmed = round;
                Next::Confirmed
            }
            Confirmation::Fenced => Next::Stop(StopReason::Fenced),
            Confirmation::Unknown(detail) => Next::Again(detail),
        }
    }

    /// The next thing that may be told now, in the order of decision.
    pub fn delivery(&mut self) -> Option<Delivery> {
        if self.trusted_from > self.confirmed {
            return None;
        }
        Some(match self.outbox.pop(self.durable, self.confirmed)? {
            News::Live(at, event) => Delivery::Live(at, event),
            News::Reply(to, reply) => Delivery::Reply(to, Durable::new(reply, self.epoch)),
        })
    }

    /// Gives everything up. The replies that were still waiting turn into the errors that are true of them: in doubt if
    /// any of their facts may be in the journal, else nothing happened.
    pub fn stop(self, reason: &StopReason) -> Vec<(Ticket, SubmitError)> {
        let in_doubt_to = match &self.flight {
            // A first attempt that was fenced is known not to have landed.
            Some(Flight::Append { attempts: 0, .. }) if *reason == StopReason::Fenced => self.durable,
            Some(Flight::Append { body, .. }) => body.end(),
            _ => self.durable,
        };
        let mut verdicts = Vec::new();
        for (parcel, tickets) in self.outbox.into_tickets() {
            let in_doubt = parcel.is_in_doubt(self.durable, in_doubt_to);
            for ticket in tickets {
                let unknown = || SubmitError::OutcomeUnknown(reason.to_string());
                verdicts.push((ticket, if in_doubt { unknown() } else { reason.nothing_happened() }));
            }
        }
        verdicts
    }

    /// The last committed slot and its hash.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// The epoch that replies carry.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Sizes of the table, decided facts included.
    pub fn counts(&self) -> Counts {
        self.table.counts()
    }

    /// Sizes of the table when everything decided was last durable: what may be shown (N1).
    pub fn durable_counts(&mut self) -> Counts {
        if self.flight.is_none() && self.bodies.is_empty() {
            self.durable_counts = self.table.counts();
        }
        self.durable_counts
    }

    /// The table, for those who check its invariants.
    pub fn table(&self) -> &LockTable {
        &self.table
    }

    /// Decisions that have not left yet: the driver stops taking when there are too many.
    pub fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Whether nothing is in flight and nothing waits to be.
    pub fn is_idle(&self) -> bool {
        self.flight.is_none() && self.bodies.is_empty() && self.outbox.len() == 0
    }

    /// Puts a decision on its way, and leaves it empty.
    fn decided(&mut self, decision: &mut Decision, at: WallTime) {
        let Decision { facts, replies, events, confirm } = decision;
        let first = self.bodies.decided();
        let mut events = events.drain(..).peekable();
        for (index, fact) in facts.iter().enumerate() {
            self.bodies.push(fact);
            while let Some((place, event)) =
                events.next_if(|(place, _)| *place == EventAt::Fact(index) || *place == EventAt::Nowhere)
            {
                match place {
                    EventAt::Fact(_) => self.bodies.push_event(at, event),
                    EventAt::Nowhere => self.live.push((at, event)),
                }
            }
        }
        for (place, event) in events {
            assert_eq!(place, EventAt::Nowhere, "the events of facts stand in the order of their facts");
            self.live.push((at, event));
        }
        facts.clear();
        let round = if *confirm { self.begun + 1 } else { 0 };
        self.outbox.push(first..self.bodies.decided(), round, replies, &mut self.live);
    }

    fn begin_append(&mut self, body: Body) -> Chained {
        self.begun += 1;
        let slot = self.tail.slot.next();
        let batch = Batch { slot, id: self.batch_id(slot), prev_hash: self.tail.hash, body: body.bytes() };
        let batch = Chained::new(batch, self.epoch);
        let counts = self.bodies.is_empty().then(|| self.table.counts());
        self.flight =
            Some(Flight::Append { batch: batch.clone(), body, counts, round: self.begun, attempts: 0 });
        batch
    }

    /// The same for every attempt at a slot, and different from what any other node or epoch tries there.
    fn batch_id(&self, slot: Slot) -> BatchId {
        let mut bytes = *self.nonce.as_bytes();
        for (byte, of_slot) in bytes.iter_mut().zip(slot.0.to_le_bytes()) {
            *byte ^= of_slot;
        }
        BatchId(u128::from_le_bytes(bytes))
    }

    fn committed(&mut self, batch: Chained, body: Body, round: u64) -> CommittedBatch {
        self.tail = batch.tail();
        self.durable = body.end();
        self.confirmed = round;
        let (facts, bytes) = (body.facts(), batch.body.len());
        CommittedBatch { slot: batch.slot, facts, bytes, events: body.into_events() }
    }
}

#[cfg(test)]
mod tests;
