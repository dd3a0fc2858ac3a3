//! A node that serves: the real state, one piece of work in flight, as the driver does it.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{Command, Reply, Request, Ticket, invariants};
use leasehold_journal::{Confirmation, Outcome, Room};
use leasehold_node::parts::{
    BEAT, HEARTBEAT, RESOLVE_EVERY, STALL, ServingTime, TICK_MOST, Vigil, WITNESS_EVERY,
};
use leasehold_node::state::{Delivery, Next, State, Work};
use leasehold_node::{Call, Durable, StopReason, SubmitError};
use leasehold_types::Now;

use super::{Role, Standby};
use crate::clock::{MS, Micros};
use crate::engine::{Ask, ClaimIx, Told};
use crate::event::{ClientIx, Event, OpId};
use crate::mistake::Mistake;
use crate::world::{Phase, World};

/// The table's own promises are checked after so many rounds: that walks through everything it holds.
const TABLE_CHECKED_EVERY: u64 = 512;
/// Of these checks, so many compare it with its journal, too: that writes both states out. Every take-over does, as well.
const COMPARED_EVERY: u64 = 2;
/// A node waits this long for an answer of the engine.
const NO_ANSWER: Micros = 500 * MS;

/// See the module.
pub(crate) struct Active {
    pub(crate) state: State,
    time: ServingTime,
    pub(crate) claim: ClaimIx,
    pub(crate) inbox: Vec<(ClientIx, OpId, Box<Call>)>,
    calls: BTreeMap<Ticket, (ClientIx, OpId)>,
    last_ticket: u64,
    flight: Option<Flight>,
    next_beat: Duration,
    next_witness: Duration,
    is_resigning: bool,
    /// A time-out is set: for the work in flight, or for some that was before it.
    is_timed: bool,
    rounds: u64,
}

/// Work whose outcome is awaited.
struct Flight {
    op: OpId,
    work: Task,
    attempt: u32,
    /// When it was sent; `None` while it waits to be sent again.
    sent_at: Option<Micros>,
    give_up_at: Option<Duration>,
}

#[derive(Clone)]
enum Task {
    Work(Work),
    Beat,
}

impl Active {
    pub(crate) fn new(state: State, time: ServingTime, claim: ClaimIx) -> Self {
        Self {
            state,
            time,
            claim,
            inbox: Vec::new(),
            calls: BTreeMap::new(),
            last_ticket: 0,
            flight: None,
            next_beat: Duration::ZERO,
            next_witness: Duration::ZERO,
            is_resigning: false,
            is_timed: false,
            rounds: 0,
        }
    }

    /// Whoever still waits for an answer.
    pub(crate) fn into_calls(self) -> Vec<(ClientIx, OpId)> {
        let unread = self.inbox.into_iter().map(|(client, op, _)| (client, op));
        self.calls.into_values().chain(unread).collect()
    }

    fn take_inbox(&mut self, now: Now) {
        for (client, op, call) in std::mem::take(&mut self.inbox) {
            self.last_ticket += 1;
            let ticket = Ticket(self.last_ticket);
            self.calls.insert(ticket, (client, op));
            self.state.take(ticket, *call, now);
        }
    }
}

impl World {
    /// The first round after taking over.
    pub(crate) fn took_over(&mut self, ix: usize) {
        self.takeovers += 1;
        self.attach_watchers();
        self.pump(ix);
    }

    /// One round: look, take, let time do its work, deliver, begin the next piece of work.
    pub(crate) fn pump(&mut self, ix: usize) {
        let reading = self.nodes[ix].clock.read(self.now);
        let (room, mistake) = (self.room, self.mistake);
        let Some(active) = self.nodes[ix].active() else { return };
        active.state.set_room(room == Room::Plenty);
        let look = active.time.look(reading);
        if look.paused.is_some() || look.suspended {
            active.state.distrust();
        }
        let now = active.time.now();
        self.commands += active.inbox.len() as u64;
        let reads =
            if mistake == Some(Mistake::ReadsFromMemory) { active.take_reads(now) } else { Vec::new() };
        active.take_inbox(now);
        if !active.is_resigning && mistake != Some(Mistake::NothingExpires) {
            active.state.tick(active.time.due(), TICK_MOST);
        }
        active.rounds += 1;
        let is_checked = active.rounds.is_multiple_of(TABLE_CHECKED_EVERY);
        let witness_due = reading.monotonic >= active.next_witness;
        for (client, op, reply) in reads {
            self.send_answer(ix, client, op, None, Ok(reply));
        }
        if is_checked {
            self.check_table(ix);
        }
        if witness_due {
            self.witness_active(ix, reading.monotonic);
        }
        self.deliver(ix);
        self.begin_work(ix, reading.monotonic);
        self.deliver(ix);
        self.set_active_timer(ix, reading.monotonic);
    }

    fn begin_work(&mut self, ix: usize, local: Duration) {
        let mistake = self.mistake;
        loop {
            let Some(active) = self.nodes[ix].active() else { return };
            if active.flight.is_some() {
                return;
            }
            let work = active.state.next_work();
            let task = match work {
                Some(Work::Confirm) if mistake == Some(Mistake::RenewalsUnconfirmed) => {
                    active.state.confirmed(Confirmation::Current);
                    continue;
                }
                Some(work) => Task::Work(work),
                None if active.is_resigning => return self.resigned(ix),
                None if local >= active.next_beat => Task::Beat,
                None => return,
            };
            if !matches!(task, Task::Work(Work::Confirm)) {
                active.next_beat = local + BEAT;
            }
            return self.attempt(ix, task, 0, None);
        }
    }

    fn attempt(&mut self, ix: usize, task: Task, attempt: u32, give_up_at: Option<Duration>) {
        let (op, now) = (self.next_op(), self.now);
        let Some(active) = self.nodes[ix].active() else { return };
        let claim = active.claim;
        let ask = match &task {
            Task::Work(Work::Append(batch)) => Ask::Append { claim, batch: Box::new(batch.clone()), attempt },
            Task::Work(Work::Confirm) => Ask::Confirm { claim },
            Task::Beat => Ask::Beat { claim },
        };
        let is_append = matches!(ask, Ask::Append { .. });
        active.flight = Some(Flight { op, work: task, attempt, sent_at: Some(now), give_up_at });
        let is_timed = std::mem::replace(&mut active.is_timed, true);
        self.ask_engine(ix, op, ask);
        if !is_timed {
            self.push_op_timeout(ix, op, now + NO_ANSWER);
        }
        if is_append && self.mistake == Some(Mistake::ToldBeforeDurable) {
            self.worked(ix, op, Told::Outcome(Outcome::Committed));
        }
    }

    /// No answer in time: the outcome is unknown. If other work is in flight by now, its time is set.
    pub(crate) fn work_timed_out(&mut self, ix: usize, op: OpId) {
        let unknown = "no answer in time".to_owned();
        let Some(active) = self.nodes[ix].active() else { return };
        active.is_timed = false;
        let Some(flight) = &active.flight else { return };
        if let Some(sent_at) = flight.sent_at.filter(|_| flight.op != op) {
            let op = flight.op;
            active.is_timed = true;
            self.push_op_timeout(ix, op, sent_at + NO_ANSWER);
        } else if flight.op == op {
            let told = match flight.work {
                Task::Work(Work::Confirm) => Told::Confirmed(Confirmation::Unknown(unknown)),
                _ => Told::Outcome(Outcome::Unknown(unknown)),
            };
            self.unknowns += 1;
            self.worked(ix, op, told);
        }
    }

    /// The work in flight has an outcome.
    pub(crate) fn worked(&mut self, ix: usize, op: OpId, told: Told) {
        let local = self.nodes[ix].clock.read(self.now).monotonic;
        let Some(active) = self.nodes[ix].active() else { return };
        let Some(flight) = active.flight.take_if(|flight| flight.op == op) else { return };
        let next = match (&flight.work, told) {
            (Task::Work(Work::Append(_)), Told::Outcome(outcome)) => active.state.appended(outcome),
            (Task::Work(Work::Confirm), Told::Confirmed(confirmation)) => {
                active.state.confirmed(confirmation)
            }
            (Task::Beat, Told::Outcome(outcome)) => beaten(outcome),
            _ => panic!("an answer to something else"),
        };
        match next {
            Next::Committed(batch) => self.show(ix, batch.slot.0, batch.events.len()),
            Next::Confirmed => {}
            Next::Again(detail) => {
                let give_up_at = flight.give_up_at.unwrap_or(local + STALL);
                if local >= give_up_at {
                    return self.stop_active(ix, &StopReason::Unresolved(detail));
                }
                let op = self.next_op();
                let Some(active) = self.nodes[ix].active() else { return };
                active.flight = Some(Flight { op, sent_at: None, give_up_at: Some(give_up_at), ..flight });
                let at = self.nodes[ix].clock.when(local + RESOLVE_EVERY);
                let life = self.nodes[ix].life;
                return self.push(at, Event::Retry { node: ix, life, op });
            }
            Next::Stop(reason) => return self.stop_active(ix, &reason),
        }
        self.pump(ix);
    }

    /// The pause before the next attempt is over.
    pub(crate) fn retry(&mut self, ix: usize, op: OpId) {
        let Some(active) = self.nodes[ix].active() else { return };
        if let Some(flight) = active.flight.take_if(|flight| flight.op == op) {
            self.attempt(ix, flight.work, flight.attempt + 1, flight.give_up_at);
        }
        self.pump(ix);
    }

    /// The node is asked to end in order.
    pub(crate) fn resign(&mut self, ix: usize) {
        let Some(active) = self.nodes[ix].active() else { return };
        if active.is_resigning {
            return;
        }
        active.is_resigning = true;
        let unread = std::mem::take(&mut active.inbox);
        active.state.resign();
        for (client, op, _) in unread {
            self.send_answer(ix, client, op, None, Err(SubmitError::ShuttingDown));
        }
        self.pump(ix);
    }

    fn resigned(&mut self, ix: usize) {
        self.stop_active(ix, &StopReason::Shutdown);
    }

    fn stop_active(&mut self, ix: usize, reason: &StopReason) {
        let own = self.nodes[ix].own;
        let chance = self.chance.unit();
        let node = &mut self.nodes[ix];
        node.life += 1;
        node.timer_at = None;
        let next = match reason {
            StopReason::Fenced | StopReason::Unresolved(_) => {
                Role::Standby(Box::new(Standby::new(Vigil::new(self.patience, own, chance))))
            }
            StopReason::Shutdown => Role::Down,
            _ => Role::Halted,
        };
        let Role::Active(active) = std::mem::replace(&mut node.role, next) else { return };
        let Active { state, mut calls, inbox, .. } = *active;
        for (ticket, error) in state.stop(reason) {
            let Some((client, op)) = calls.remove(&ticket) else { continue };
            let error = match error {
                SubmitError::OutcomeUnknown(_) if self.mistake == Some(Mistake::DoubtCalledFailure) => {
                    SubmitError::NotActive
                }
                error => error,
            };
            self.send_answer(ix, client, op, None, Err(error));
        }
        let waiting = calls.into_values().chain(inbox.into_iter().map(|(client, op, _)| (client, op)));
        for (client, op) in waiting.collect::<Vec<_>>() {
            self.send_answer(ix, client, op, None, Err(SubmitError::NotActive));
        }
        self.attach_watchers();
        if matches!(self.nodes[ix].role, Role::Down) {
            let at = self.now + self.chance.within(100, 2_000) * MS;
            self.push(at, Event::Start { node: ix });
        }
        self.set_node_timer(ix, self.now + 1);
    }

    fn deliver(&mut self, ix: usize) {
        let mistake = self.mistake;
        while let Some(active) = self.nodes[ix].active()
            && let Some(delivery) = active.state.delivery()
        {
            let Delivery::Reply(ticket, durable) = delivery else { continue };
            let Some((client, op)) = active.calls.remove(&ticket) else { continue };
            if mistake == Some(Mistake::AnswersForgotten) && self.chance.per_mille(20) {
                continue;
            }
            let epoch = durable.epoch().0;
            self.send_answer(ix, client, op, Some(epoch), Ok(mistaken(mistake, durable)));
        }
    }

    fn set_active_timer(&mut self, ix: usize, local: Duration) {
        let stands_still = self.mistake == Some(Mistake::NothingExpires);
        let node = &mut self.nodes[ix];
        let clock = node.clock;
        let Some(active) = node.active() else { return };
        let next = active.state.next_deadline().filter(|_| !active.is_resigning && !stands_still);
        let deadline = next.map(|deadline| active.time.monotonic_at(deadline));
        let heartbeat = local + HEARTBEAT;
        let at = deadline.map_or(heartbeat, |deadline| deadline.min(heartbeat));
        self.set_node_timer(ix, clock.when(at));
    }

    fn witness_active(&mut self, ix: usize, local: Duration) {
        let Some(active) = self.nodes[ix].active() else { return };
        active.next_witness = local + WITNESS_EVERY;
        let (claim, tail, epoch) = (active.claim, active.state.tail(), active.state.epoch());
        let tail = self.engine.witnessed(tail);
        let nonce = self.nodes[ix].own.unwrap_or(leasehold_types::Nonce::from_bytes([0; 16]));
        let witness = leasehold_journal::Witness { tail, ..self.witness_of(claim, nonce, epoch) };
        self.bear_witness(ix, witness);
    }

    /// The promises of the table itself, and that it is what its journal says (S15).
    pub(crate) fn check_table(&mut self, ix: usize) {
        let Some(active) = self.nodes[ix].active() else { return };
        let lawful = invariants::check(active.state.table());
        let (is_idle, claim, tail) = (active.state.is_idle(), active.claim, active.state.tail());
        let is_settled = is_idle
            && self.phase != Phase::Regressed
            && self.engine.is_current(claim)
            && self.engine.tail() == tail;
        let Role::Active(active) = &self.nodes[ix].role else { return };
        let is_compared = (active.rounds / TABLE_CHECKED_EVERY).is_multiple_of(COMPARED_EVERY);
        let equal = if is_settled && is_compared && !self.is_off("S15") {
            invariants::states_are_equal(active.state.table().journaled(), &self.engine.shadow)
        } else {
            Ok(())
        };
        self.must("table", lawful);
        self.must("S15", equal);
    }
}

impl Active {
    /// Answers reads out of memory, whoever may have taken over meanwhile: a mistake.
    fn take_reads(&mut self, now: Now) -> Vec<(ClientIx, OpId, Reply)> {
        let (reads, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.inbox)
            .into_iter()
            .partition(|(_, _, call)| matches!(call.command, Command::Query(_)));
        self.inbox = rest;
        let mut table = self.state.table().clone();
        reads
            .into_iter()
            .filter_map(|(client, op, call)| {
                let Call { tenant, identity, key, command } = *call;
                let request = Request { ticket: Ticket(0), tenant, identity, key, command };
                let reply = table.decide(request, now).replies.pop()?.1;
                Some((client, op, reply))
            })
            .collect()
    }
}

fn beaten(outcome: Outcome) -> Next {
    match outcome {
        Outcome::Committed => Next::Confirmed,
        Outcome::Fenced => Next::Stop(StopReason::Fenced),
        Outcome::Conflict(found) => Next::Stop(StopReason::Conflict(found)),
        Outcome::Failed(detail) => Next::Stop(StopReason::JournalFailed(detail)),
        Outcome::Regressed(detail) => Next::Stop(StopReason::Halted(detail)),
        Outcome::Unknown(detail) => Next::Again(detail),
    }
}

/// A reply as a node with this mistake would give it.
fn mistaken(mistake: Option<Mistake>, durable: Durable<Reply>) -> Reply {
    match (durable.into_inner(), mistake) {
        (Reply::Released { resource, token, session }, Some(Mistake::WrongTokenReleased)) => {
            let older = leasehold_types::FencingToken::new(token.get().saturating_sub(1).max(1));
            Reply::Released { resource, token: older.unwrap_or(token), session }
        }
        (Reply::ForceReleased { released, .. }, Some(Mistake::AuditNumberRepeats)) => {
            Reply::ForceReleased { released, audit_seq: 1 }
        }
        (reply, _) => reply,
    }
}
