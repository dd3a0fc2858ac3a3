//! The lock table: the journaled part, changed by facts alone, and the volatile part beside it.
//!
//! Decisions are spread over files by what is asked: `acquire.rs` (grants and hand-over), `renewal.rs`, `ending.rs`
//! (release, close, force), `query.rs`. This file has what they share: recording a fact, and the passing of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use leasehold_types::{
    Durability, FencingToken, LeaseId, Now, ResourceKey, SessionId, TenantName, Time, Ttl, limits,
    time::armed_ms,
};

use crate::chunked::Chunked;
use crate::clocks::{LeaseClocks, LifeClock, LifeIx, Timer, Timers};
use crate::command::{Command, Request, Ticket};
use crate::credential::may_use;
use crate::event::Event;
use crate::fact::{Fact, Granted, LifeId, SessionEnd};
use crate::journaled::{Change, Ended, Journaled};
use crate::lease::{LeaseIx, Note, SessionIx};
use crate::outcomes::{EndedLease, EndedSession};
use crate::queue::Queues;
use crate::reply::{Refusal, Reply};
use crate::usage::Quotas;

/// Remembered outcomes are looked through this often for those that are old enough to forget.
const FORGET_EVERY_MS: u64 = 60_000;
/// The age of a lease with a max hold is noted at most this often.
const NOTE_AGE_AT_LEAST_MS: u64 = 10_000;
/// The first note after a start comes this soon, however long the ttl.
const NOTE_FIRST_MS: u64 = 15_000;
/// After a restart expiries are spread over at most this long (N4).
const SPREAD_MAX_MS: u64 = 2_000;

/// What a table must know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What the journal keeps: decides which classes may be granted.
    pub durability: Durability,
    /// Correctness locks are granted even if the journal can lose them: an operator's choice. They are then worth no
    /// more than the journal, and say so.
    pub correctness_despite_loss: bool,
}

impl Settings {
    /// The settings on a journal that keeps this much, without any exception.
    pub const fn on(durability: Durability) -> Self {
        Self { durability, correctness_despite_loss: false }
    }

    /// Whether a correctness lock may be granted.
    pub(crate) const fn grants_correctness(self) -> bool {
        self.durability.keeps_tokens() || self.correctness_despite_loss
    }
}

/// What came of a command or of the passing of time.
#[derive(Debug, Default)]
pub struct Decision {
    /// To be journaled, in this order. Already applied.
    pub facts: Vec<Fact>,
    /// To be told once everything decided so far is durable.
    pub replies: Vec<(Ticket, Reply)>,
    /// To be shown once everything decided so far is durable.
    pub events: Vec<(EventAt, Event)>,
    /// Nothing is to be committed that would confirm our epoch: the replies need a confirmation of their own, begun
    /// after the command arrived (R1).
    pub confirm: bool,
}

/// Which fact of its decision an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventAt {
    /// The fact with this index in [`Decision::facts`].
    Fact(usize),
    /// None: the event is not journaled.
    Nowhere,
}

/// Sizes, for metrics and limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Live leases.
    pub leases: usize,
    /// Live sessions.
    pub sessions: usize,
    /// Waiting acquires.
    pub waiters: usize,
    /// The largest token ever given.
    pub last_token: u64,
    /// The generation.
    pub generation: u64,
    /// The token floor of the last recovery: larger tokens are of this generation, others of an earlier one. 0 where
    /// there was none.
    pub recovered_above: u64,
}

/// The lock table. See the crate's documentation for how to drive it.
#[derive(Clone, Debug)]
pub struct LockTable {
    pub(crate) journaled: Journaled,
    pub(crate) settings: Settings,
    pub(crate) leases: LeaseClocks,
    /// By the number of the session's index.
    pub(crate) sessions: Chunked<LifeClock>,
    pub(crate) timers: Timers,
    pub(crate) queues: Queues,
    /// When each open lock delay ends.
    pub(crate) delays: BTreeMap<(ResourceKey, FencingToken), Time>,
    /// Resources that may have a place for their first waiter now; served before a decision is given out.
    pub(crate) freed: Vec<ResourceKey>,
    /// Whether the journal has room for grants.
    pub(crate) room: bool,
    /// Resources whose first waiter could be granted but for room.
    pub(crate) held_back: BTreeSet<ResourceKey>,
    /// At this time the newest remembered outcome had this number.
    marks: VecDeque<(Time, u64)>,
    forget_armed: bool,
    /// When this table began to serve.
    started: Time,
    /// Whose command is being decided; what is bound to others is unknown to it. `None` while time passes, for callers
    /// of an open server, and for operators, who may touch what is others'.
    pub(crate) deciding_for: Option<Box<str>>,
    /// How much each tenant may have.
    pub(crate) quotas: Quotas,
    /// Empty between facts, and used again for each.
    changes: Vec<Change>,
}

impl LockTable {
    /// A table over what was journaled, serving from `now` on: every lease has its full ttl again (R2), spread a little
    /// later (N4), or what was last noted of a long one (R6). Nobody waits.
    pub fn restore(journaled: Journaled, settings: Settings, now: Now) -> Self {
        let mut table = Self {
            journaled,
            settings,
            leases: LeaseClocks::default(),
            sessions: Chunked::default(),
            timers: Timers::default(),
            queues: Queues::default(),
            delays: BTreeMap::new(),
            freed: Vec::new(),
            room: true,
            held_back: BTreeSet::new(),
            marks: VecDeque::new(),
            forget_armed: false,
            started: now.time,
            deciding_for: None,
            quotas: Quotas::default(),
            changes: Vec::new(),
        };
        table.restore_lives(now.time);
        table.restore_delays(now.time);
        table.arm_forgetting(now.time);
        table
    }

    fn restore_lives(&mut self, now: Time) {
        let sessions: Vec<SessionIx> = self.journaled.sessions.iter().map(|(ix, _)| ix).collect();
        for ix in sessions {
            let session = self.journaled.sessions.get(ix);
            let id = *session.id.as_bytes();
            let clock = restored_clock(session.ttl, session.floor_ms, session.note, id, now);
            self.start_session(ix, clock);
            self.arm_note(LifeIx::Session(ix), now);
        }
        let leases: Vec<LeaseIx> = self.journaled.leases.iter().map(|(ix, _)| ix).collect();
        for ix in leases {
            let lease = self.journaled.leases.get(ix);
            let note = lease.note();
            let id = *lease.id.as_bytes();
            let clock = lease.own().map(|own| restored_clock(own.ttl, own.floor_ms, note, id, now));
            let age_ms = note.map_or(0, |note| note.age_ms);
            self.start_lease(ix, clock, age_ms, now);
            self.arm_note(LifeIx::Lease(ix), now);
        }
    }

    fn restore_delays(&mut self, now: Time) {
        let open: Vec<_> = self
            .journaled
            .resources
            .with_delays(&self.journaled.leases)
            .flat_map(|(key, resource)| resource.delays().iter().map(move |delay| (key.clone(), *delay)))
            .collect();
        for (resource, delay) in open {
            self.start_delay(resource, delay.token, now.plus_ms(delay.ms));
        }
    }

    /// These commands are decided next: what they need is fetched for all of them together, which is faster than one by one.
    pub fn look_ahead<'a>(&self, commands: impl Iterator<Item = &'a Command>) {
        for command in commands {
            if let Command::Acquire(acquire) = command {
                self.journaled.lease_ids.look_ahead(acquire.lease_id);
            }
        }
    }

    /// Decides one command. Facts are applied before this returns.
    pub fn decide(&mut self, request: Request, now: Now) -> Decision {
        let mut out = Decision::default();
        self.decide_into(request, now, &mut out);
        out
    }

    /// The same, into a decision that is empty: whoever decides much empties one and uses it again.
    pub fn decide_into(&mut self, request: Request, now: Now, out: &mut Decision) {
        debug_assert!(out.facts.is_empty() && out.replies.is_empty() && out.events.is_empty());
        let Request { ticket, tenant, identity, key, command } = request;
        let by_operator = matches!(command, Command::CloseSession { by_operator: Some(_), .. });
        self.deciding_for = if by_operator { None } else { identity.clone() };
        let reply = match command {
            Command::Acquire(acquire) => self.acquire(ticket, tenant, key, acquire, now, out),
            Command::Renew(renew) => Some(self.renew(&tenant, renew, now, out)),
            Command::Release { lease_id } => Some(self.release(&tenant, lease_id, key, now, out)),
            Command::Resign { lease_id, to } => Some(self.resign(&tenant, lease_id, to, key, now, out)),
            Command::Proclaim { lease_id, value } => Some(self.proclaim(&tenant, lease_id, value, now, out)),
            Command::Withdraw { waiter } => {
                self.withdraw(waiter);
                None
            }
            Command::OpenSession(open) => Some(self.open_session(tenant, open, key, now, out)),
            Command::RenewSession(renew) => Some(self.renew_session(&tenant, renew, now, out)),
            Command::CloseSession { session_id, by_operator } => {
                let cause = match by_operator {
                    Some(operator) => SessionEnd::ByOperator { operator, identity },
                    None => SessionEnd::Closed,
                };
                Some(self.close_session(&tenant, session_id, cause, key, now, out))
            }
            Command::ForceRelease(force) => Some(self.force_release(&tenant, force, identity, key, now, out)),
            Command::Recover(recover) => Some(self.recover(recover, identity, now, out)),
            Command::RaiseFormat(raise) => Some(self.raise_format(raise, identity, now, out)),
            Command::AddCredential(add) => Some(self.add_credential(add, identity, key.as_ref(), now, out)),
            Command::RevokeCredential(revoke) => Some(self.revoke_credential(revoke, identity, now, out)),
            Command::NoteBackup(operator) => {
                Some(self.note_backup(operator, identity, (&tenant, key.as_ref()), now, out))
            }
            Command::NoteSettings { operator, is_default, quotas } => {
                self.set_quotas(quotas);
                Some(self.note_settings(operator, is_default, now, out))
            }
            Command::Query(query) => Some(self.query(&tenant, query, now)),
        };
        self.deciding_for = None;
        // The command's own answer comes before those of waiters that it made room for.
        match reply {
            Some(reply) if out.replies.is_empty() => out.replies.push((ticket, reply)),
            Some(reply) => out.replies.insert(0, (ticket, reply)),
            None => {}
        }
        self.finish(now, out);
    }

    /// Ends what has reached its deadline: leases, sessions, waits, lock delays; notes long leases. Stops after about
    /// `most` facts; call again while [`LockTable::next_deadline`] has come.
    pub fn tick(&mut self, now: Now, most: usize) -> Decision {
        let mut out = Decision::default();
        if self.room {
            let held_back = std::mem::take(&mut self.held_back);
            self.freed.extend(held_back);
        }
        self.serve_freed(now, &mut out);
        while out.facts.len() + out.replies.len() < most {
            let Some(timer) = self.timers.take_due(now.time) else { break };
            self.fire(timer, now, &mut out);
            self.serve_freed(now, &mut out);
        }
        self.finish(now, &mut out);
        out
    }

    /// When [`LockTable::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.room && !self.held_back.is_empty() {
            return Some(Time(0));
        }
        self.timers.next()
    }

    /// Says whether the journal has room for grants. Without it acquires and session openings are refused; endings go on.
    pub fn set_room(&mut self, room_for_grants: bool) {
        self.room = room_for_grants;
    }

    /// Says how much each tenant may have. What it has already stays.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        self.quotas = quotas;
    }

    /// The journaled part.
    pub fn journaled(&self) -> &Journaled {
        &self.journaled
    }

    /// Sizes.
    pub fn counts(&self) -> Counts {
        Counts { waiters: self.queues.len(), ..self.journaled.counts() }
    }

    /// A fact that the node decides itself: it founded the journal, took it over, made a secret for its nodes, or
    /// resigns.
    pub fn mark(&mut self, fact: &Fact) {
        let lawful = matches!(
            fact,
            Fact::TookOver(_) | Fact::Resigned | Fact::SecretMade(_) | Fact::FormatRaised { by: None, .. }
        );
        assert!(lawful, "every other fact comes of a command or of time");
        self.journaled.apply(fact, &mut Vec::new());
    }

    fn finish(&mut self, now: Now, out: &mut Decision) {
        self.serve_freed(now, out);
        self.arm_forgetting(now.time);
        out.confirm = out.facts.is_empty() && !out.replies.is_empty();
    }

    /// Applies a fact to both parts and puts it into the decision.
    pub(crate) fn record(&mut self, fact: Fact, now: Now, out: &mut Decision) {
        self.record_after_wait(fact, 0, now, out);
    }

    /// The same for a grant whose holder has waited; gives the lease.
    pub(crate) fn record_grant(
        &mut self,
        granted: Granted,
        waited_ms: u64,
        now: Now,
        out: &mut Decision,
    ) -> LeaseIx {
        let ix = self.record_after_wait(Fact::Granted(Box::new(granted)), waited_ms, now, out);
        ix.expect("a grant makes a lease")
    }

    /// The lease that was granted, if one was.
    fn record_after_wait(
        &mut self,
        fact: Fact,
        waited_ms: u64,
        now: Now,
        out: &mut Decision,
    ) -> Option<LeaseIx> {
        let mut granted = None;
        let at = EventAt::Fact(out.facts.len());
        let mut changes = std::mem::take(&mut self.changes);
        self.journaled.apply(&fact, &mut changes);
        out.facts.push(fact);
        for change in changes.drain(..) {
            match change {
                Change::Granted(ix) => {
                    let own = self.journaled.leases.get(ix).own();
                    let clock = own.map(|own| LifeClock::new(now.time.plus_ms(own.ttl.armed_ms()), Time(0)));
                    self.start_lease(ix, clock, 0, now.time);
                    self.arm_note(LifeIx::Lease(ix), now.time);
                    out.events.push((at, self.journaled.granted_event(ix, waited_ms)));
                    granted = Some(ix);
                }
                Change::Proclaimed(ix) => out.events.push((at, self.journaled.proclaimed_event(ix))),
                Change::Ended(ended) => {
                    let held_ms = self.leases.age_ms(ended.ix, now.time);
                    out.events.push((at, ended.event(held_ms)));
                    self.stop_lease(&ended);
                }
                Change::SessionOpened(ix) => {
                    let ttl = self.journaled.sessions.get(ix).ttl;
                    let clock = LifeClock::new(now.time.plus_ms(ttl.armed_ms()), Time(0));
                    self.start_session(ix, clock);
                    self.arm_note(LifeIx::Session(ix), now.time);
                }
                Change::SessionEnded(ix, id) => {
                    self.stop_session(ix);
                    self.refuse_waiters_of(id, out);
                }
                Change::DelayOpened { resource, delay } => {
                    self.start_delay(resource, delay.token, now.time.plus_ms(delay.ms));
                }
                Change::DelayEnded { resource, token } => {
                    self.delays.remove(&(resource.clone(), token));
                    self.freed.push(resource);
                }
            }
        }
        self.changes = changes;
        granted
    }

    fn start_lease(&mut self, ix: LeaseIx, life: Option<LifeClock>, age_ms: u64, now: Time) {
        let lease = self.journaled.leases.get(ix);
        let max_hold_at = lease.max_hold_ms().map(|ms| now.plus_ms(armed_ms(ms).saturating_sub(age_ms)));
        let deadline = life.as_ref().map(|life| life.deadline);
        self.leases.start(ix, (now, age_ms), life, max_hold_at);
        if let Some(deadline) = deadline {
            self.timers.arm(deadline, Timer::Life(LifeIx::Lease(ix)));
        }
        if let Some(at) = max_hold_at {
            self.timers.arm(at, Timer::MaxHold(ix));
        }
    }

    fn stop_lease(&mut self, ended: &Ended) {
        let ix = ended.ix;
        if let Some(clock) = self.leases.stop(ix) {
            if let Some(life) = &clock.life {
                self.timers.disarm(life.armed, Timer::Life(LifeIx::Lease(ix)));
            }
            if let Some(at) = clock.max_hold_at {
                self.timers.disarm(at, Timer::MaxHold(ix));
            }
            if let Some(at) = clock.note_at() {
                self.timers.disarm(at, Timer::Note(LifeIx::Lease(ix)));
            }
        }
        if self.queues.of(&ended.lease.resource).is_some() {
            self.freed.push(ended.lease.resource.clone());
        }
    }

    fn start_session(&mut self, ix: SessionIx, clock: LifeClock) {
        let deadline = clock.deadline;
        self.sessions.put(ix.number(), clock);
        self.timers.arm(deadline, Timer::Life(LifeIx::Session(ix)));
    }

    fn stop_session(&mut self, ix: SessionIx) {
        let clock = std::mem::take(&mut self.sessions[ix.number()]);
        self.timers.disarm(clock.armed, Timer::Life(LifeIx::Session(ix)));
        if let Some(at) = clock.note_at {
            self.timers.disarm(at, Timer::Note(LifeIx::Session(ix)));
        }
    }

    fn start_delay(&mut self, resource: ResourceKey, token: FencingToken, until: Time) {
        self.timers.arm(until, Timer::Delay(resource.clone(), token));
        self.delays.insert((resource, token), until);
    }

    /// Arms the next note of a life that needs notes and has none to come. Soon after a start they come at doubling
    /// intervals, so that a crash loop of any period gets on with ending what nobody renews.
    pub(crate) fn arm_note(&mut self, life: LifeIx, now: Time) {
        let Some(every_ms) = self.note_every_ms(life) else { return };
        let uptime_ms = now.ms_since(self.started);
        let at = now.plus_ms(every_ms.min(uptime_ms.max(NOTE_FIRST_MS)));
        match life {
            LifeIx::Lease(ix) => {
                if self.leases.note_at(ix).is_some() {
                    return;
                }
                self.leases.set_note_at(ix, Some(at));
            }
            LifeIx::Session(ix) => {
                let clock = &mut self.sessions[ix.number()];
                if clock.note_at.is_some() {
                    return;
                }
                clock.note_at = Some(at);
            }
        }
        self.timers.arm(at, Timer::Note(life));
    }

    /// Long lives are noted every quarter of their ttl (R6), or of what a longer one before it had promised; and so are
    /// ages where a max hold counts them.
    fn note_every_ms(&self, life: LifeIx) -> Option<u64> {
        let (longest_ms, max_hold_ms) = match life {
            LifeIx::Session(ix) => {
                let session = self.journaled.sessions.get(ix);
                (Some(session.ttl.ms().max(session.floor_ms)), None)
            }
            LifeIx::Lease(ix) => {
                let lease = self.journaled.leases.get(ix);
                (lease.own().map(|own| own.ttl.ms().max(own.floor_ms)), lease.max_hold_ms())
            }
        };
        let by_ttl = longest_ms.filter(|ms| *ms >= limits::NOTE_FROM_TTL_MS).map(|ms| ms / 4);
        let by_age = max_hold_ms.map(|ms| (ms / 4).max(NOTE_AGE_AT_LEAST_MS));
        by_ttl.into_iter().chain(by_age).min()
    }

    fn fire(&mut self, timer: Timer, now: Now, out: &mut Decision) {
        match timer {
            Timer::Life(life) => self.life_is_due(life, now, out),
            Timer::MaxHold(ix) => {
                let lease_id = self.journaled.leases.get(ix).id;
                self.record(Fact::Expired { lease_id, max_hold: true, at: now.wall }, now, out);
            }
            Timer::Note(life) => self.note(life, now, out),
            Timer::Wait(ticket) => self.end_wait(ticket, now, out),
            Timer::Delay(resource, token) => self.record(Fact::DelayEnded { resource, token }, now, out),
            Timer::Forget => self.forget(now, out),
        }
    }

    /// Ends a life, or arms its timer again where renewals have moved the deadline.
    fn life_is_due(&mut self, life: LifeIx, now: Now, out: &mut Decision) {
        let clock = self.life_clock_mut(life);
        if clock.deadline > now.time {
            clock.armed = clock.deadline;
            let at = clock.deadline;
            self.timers.arm(at, Timer::Life(life));
            return;
        }
        let fact = match self.life_id(life) {
            LifeId::Lease(lease_id) => Fact::Expired { lease_id, max_hold: false, at: now.wall },
            LifeId::Session(session_id) => {
                Fact::SessionEnded { session_id, cause: SessionEnd::Expired, at: now.wall, key: None }
            }
        };
        self.record(fact, now, out);
    }

    /// Writes down what is left of a life. Every renewal decided before this is in the deadline already, so a restart
    /// from this note ends the life no earlier than any answer has promised.
    fn note(&mut self, life: LifeIx, now: Now, out: &mut Decision) {
        let of = self.life_id(life);
        let (deadline, age_ms) = match life {
            LifeIx::Session(ix) => (Some(self.sessions[ix.number()].deadline), 0),
            LifeIx::Lease(ix) => {
                (self.leases.life(ix).map(|life| life.deadline), self.leases.age_ms(ix, now.time))
            }
        };
        match life {
            LifeIx::Session(ix) => self.sessions[ix.number()].note_at = None,
            LifeIx::Lease(ix) => self.leases.set_note_at(ix, None),
        }
        let remaining_ms = deadline.map_or(0, |deadline| deadline.ms_since(now.time));
        self.record(Fact::Noted { of, remaining_ms, age_ms }, now, out);
        self.arm_note(life, now.time);
    }

    fn forget(&mut self, now: Now, out: &mut Decision) {
        self.forget_armed = false;
        self.marks.push_back((now.time, self.journaled.outcomes.count));
        let mut through = 0;
        while let Some((at, number)) = self.marks.front().copied() {
            if now.time.ms_since(at) < limits::OUTCOME_MS {
                break;
            }
            through = number;
            self.marks.pop_front();
        }
        if self.journaled.outcomes.oldest().is_some_and(|oldest| oldest <= through) {
            self.record(Fact::Forgotten { through }, now, out);
        }
    }

    fn arm_forgetting(&mut self, now: Time) {
        if self.forget_armed || (self.journaled.outcomes.is_empty() && self.marks.is_empty()) {
            return;
        }
        self.forget_armed = true;
        self.timers.arm(now.plus_ms(FORGET_EVERY_MS), Timer::Forget);
    }

    pub(crate) fn life_clock(&self, life: LifeIx) -> &LifeClock {
        match life {
            LifeIx::Lease(ix) => self.leases.life(ix).expect("a life index names a life"),
            LifeIx::Session(ix) => &self.sessions[ix.number()],
        }
    }

    pub(crate) fn life_clock_mut(&mut self, life: LifeIx) -> &mut LifeClock {
        match life {
            LifeIx::Lease(ix) => self.leases.life_mut(ix).expect("a life index names a life"),
            LifeIx::Session(ix) => &mut self.sessions[ix.number()],
        }
    }

    pub(crate) fn life_id(&self, life: LifeIx) -> LifeId {
        match life {
            LifeIx::Lease(ix) => LifeId::Lease(self.journaled.leases.get(ix).id),
            LifeIx::Session(ix) => LifeId::Session(self.journaled.sessions.get(ix).id),
        }
    }

    /// What keeps a lease alive.
    pub(crate) fn life_of(&self, ix: LeaseIx) -> LifeIx {
        self.journaled.leases.get(ix).session().map_or(LifeIx::Lease(ix), LifeIx::Session)
    }

    /// A live lease of this tenant that the caller may use.
    pub(crate) fn lease_of(&self, tenant: &str, id: LeaseId) -> Option<LeaseIx> {
        let ix = self.journaled.find_lease(id)?;
        let lease = self.journaled.leases.get(ix);
        let is_ours = || self.is_ours(self.journaled.principal_of(lease));
        (lease.resource.tenant() == tenant && is_ours()).then_some(ix)
    }

    /// Whether the caller may use what is bound to this principal.
    pub(crate) fn is_ours(&self, bound_to: Option<&str>) -> bool {
        may_use(bound_to, self.deciding_for.as_deref())
    }

    /// An ended lease of this tenant that the caller might have used.
    pub(crate) fn ended_lease_of(&self, tenant: &str, id: LeaseId) -> Option<&EndedLease> {
        let ended = self.journaled.ended_lease(id)?;
        (ended.tenant.as_str() == tenant && self.is_ours(ended.principal.as_deref())).then_some(ended)
    }

    /// An ended session of this tenant that the caller might have used.
    pub(crate) fn ended_session_of(&self, tenant: &TenantName, id: SessionId) -> Option<&EndedSession> {
        let ended = self.journaled.outcomes.session(id)?;
        (ended.tenant == *tenant && self.is_ours(ended.principal.as_deref())).then_some(ended)
    }

    /// How a lease of this tenant ended, as far as it is remembered.
    pub(crate) fn not_held(&self, tenant: &str, id: LeaseId) -> Refusal {
        match self.ended_lease_of(tenant, id) {
            Some(ended) => Refusal::LeaseNotHeld {
                reason: ended.reason,
                max_hold: ended.max_hold,
                token: ended.was.as_ref().map(|was| was.token),
            },
            None => Refusal::LeaseNotHeld {
                reason: leasehold_types::EndReason::Unknown,
                max_hold: false,
                token: None,
            },
        }
    }

    /// How long a lease's holder may still count on it: until its life ends or its max hold, without the drift that
    /// the server adds.
    pub(crate) fn promised_ms(&self, ix: LeaseIx, now: Time) -> u64 {
        let lease = self.journaled.leases.get(ix);
        let life_ms = self.life_promised_ms(self.life_of(ix), now);
        let max_hold_ms = lease.max_hold_ms().zip(self.leases.max_hold_at(ix)).map(|(ms, at)| {
            let slack = armed_ms(ms) - ms;
            at.ms_since(now).saturating_sub(slack)
        });
        max_hold_ms.map_or(life_ms, |ms| ms.min(life_ms))
    }

    pub(crate) fn life_promised_ms(&self, life: LifeIx, now: Time) -> u64 {
        let ttl = match life {
            LifeIx::Lease(ix) => self.journaled.ttl_of(self.journaled.leases.get(ix)),
            LifeIx::Session(ix) => self.journaled.sessions.get(ix).ttl,
        };
        let slack = ttl.armed_ms() - ttl.ms();
        self.life_clock(life).deadline.ms_since(now).saturating_sub(slack).min(ttl.ms())
    }

    fn refuse_waiters_of(&mut self, session: leasehold_types::SessionId, out: &mut Decision) {
        for ticket in self.queues.in_session(session) {
            self.withdraw(ticket);
            out.replies.push((ticket, Reply::Refused(Refusal::SessionEnded)));
        }
    }
}

/// The clock of a life from a restart on: its armed ttl, or what was noted, and a little more so that not all end at
/// once. What was noted counts what a longer ttl had promised, too; otherwise that promise begins again.
fn restored_clock(ttl: Ttl, floor_ms: u64, note: Option<Note>, id: [u8; 16], now: Time) -> LifeClock {
    let noted_ms = note.filter(|note| !note.cleared).map(|note| note.remaining_ms);
    let left_ms = noted_ms.unwrap_or_else(|| ttl.armed_ms());
    let floor_ms = noted_ms.map_or(floor_ms, |noted_ms| noted_ms.min(floor_ms));
    let spread_over = (ttl.ms() / 10).clamp(1, SPREAD_MAX_MS);
    let spread_ms = u64::from(u16::from_le_bytes([id[0], id[1]])) % spread_over;
    let floor = if floor_ms > 0 { now.plus_ms(floor_ms) } else { Time(0) };
    LifeClock::new(now.plus_ms(left_ms).plus_ms(spread_ms), floor)
}

#[cfg(test)]
mod tests;
