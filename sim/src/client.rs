//! A simulated client: the real deadline arithmetic, and the rules K1 to K4 and R7 around it.

mod answers;
mod asks;

use std::sync::Arc;
use std::time::Duration;

use leasehold::deadline::{Life, Phase, Stamp};
use leasehold_core::{Command, Sharing};
use leasehold_history::{Call as Shown, Id, Record};
use leasehold_types::{LeaseId, RequestKey, SessionId, Ttl};

use crate::clock::{MS, MachineClock, Micros};
use crate::event::{ClientIx, Event, OpId};
use crate::mistake::Mistake;
use crate::world::{World, mode};

/// What a client is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Idle,
    Opening,
    Asking,
    /// The lock is given, and confirmed once more before it counts (R7).
    Confirming,
    Held,
    Releasing,
    /// One question: a read, or a force-release.
    Other,
}

/// One attempt under way.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(super) op: OpId,
    pub(super) sent: Stamp,
    pub(super) sent_at: Micros,
    pub(super) command: Command,
    pub(super) key: Option<RequestKey>,
    pub(super) shown: Shown,
    pub(super) wait: Micros,
    pub(super) tries: u32,
}

impl Pending {
    pub(super) fn times_out_at(&self) -> Micros {
        self.sent_at + self.wait + 1_000 * MS
    }
}

/// The lease that a client wants or has.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(super) lease: LeaseId,
    pub(super) resource: usize,
    pub(super) sharing: Sharing,
    /// The longest ttl that it ever asked for.
    pub(super) longest_ms: u64,
    pub(super) wait_ms: u64,
    pub(super) in_session: bool,
    /// The life of a lease without a session.
    pub(super) life: Life,
    pub(super) token: u64,
    pub(super) permit: Option<u32>,
    pub(super) believed_from: Option<Micros>,
    pub(super) hold_until: Micros,
    /// When it writes next, if it has the resource alone.
    pub(super) next_write: Micros,
}

/// A session that a client keeps.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(super) id: SessionId,
    pub(super) ttl: Ttl,
    pub(super) life: Life,
}

/// See the module.
pub(crate) struct Client {
    pub(crate) name: Arc<str>,
    number: usize,
    pub(super) clock: MachineClock,
    /// Grows whenever the client dies.
    life: u64,
    is_dead: bool,
    is_paused: bool,
    /// When its timer goes off.
    timer_at: Option<Micros>,
    /// When there is something to do; not before the timer, which is then set again.
    due_at: Micros,
    pub(super) stage: Stage,
    pub(super) epoch: u64,
    pub(super) node: usize,
    pub(super) wanted: Option<Wanted>,
    pub(super) session: Option<Kept>,
    pub(super) main: Option<Pending>,
    /// To be asked again at this time.
    pub(super) again: Option<(Micros, Pending)>,
    pub(super) renewal: Option<Pending>,
    pub(super) idle_until: Micros,
    pub(super) renew_again_at: Micros,
    waiting: Vec<Event>,
}

impl Client {
    pub(crate) fn new(number: usize, life: u64, clock: MachineClock) -> Self {
        Self {
            name: format!("c{number}.{life}").into(),
            number,
            clock,
            life,
            is_dead: false,
            is_paused: false,
            timer_at: None,
            due_at: 0,
            stage: Stage::Idle,
            epoch: 0,
            node: number,
            wanted: None,
            session: None,
            main: None,
            again: None,
            renewal: None,
            idle_until: 0,
            renew_again_at: 0,
            waiting: Vec::new(),
        }
    }

    /// Whether this client is alive, believes in this life, and has renewed it since then.
    pub(crate) fn keeps_alive(&self, life: Id, since: Micros) -> bool {
        let is_mine = match (&self.wanted, &self.session) {
            (Some(wanted), _) if !wanted.in_session => *wanted.lease.as_bytes() == life.0,
            (_, Some(session)) => *session.id.as_bytes() == life.0,
            _ => false,
        };
        let confirmed = self.lease_life().and_then(Life::confirmed);
        let renewed = confirmed.is_some_and(|at| self.clock.when_stamp(at) > since);
        is_mine && self.stage == Stage::Held && !self.is_dead && !self.is_paused && renewed
    }

    /// What the lease lives by: its own life, or its session's.
    pub(super) fn lease_life(&self) -> Option<&Life> {
        match &self.wanted {
            Some(wanted) if !wanted.in_session => Some(&wanted.life),
            _ => self.session.as_ref().map(|session| &session.life),
        }
    }

    fn phase(&self, now: Micros) -> Phase {
        self.lease_life().map_or(Phase::Lost, |life| life.phase(self.clock.stamp(now)))
    }

    /// When something is to be done next.
    fn next_timer(&self, now: Micros) -> Micros {
        let pending = [&self.main, &self.renewal].into_iter().flatten().map(Pending::times_out_at).min();
        let mut next = pending.unwrap_or(Micros::MAX);
        if self.stage == Stage::Idle {
            next = next.min(self.idle_until);
        }
        if let Some((at, _)) = &self.again {
            next = next.min(*at);
        }
        if let (Stage::Held, Some(wanted)) = (self.stage, &self.wanted) {
            let cutoff = self.lease_life().map_or(now, |life| self.clock.when_stamp(life.cutoff()));
            next = next.min(wanted.hold_until).min(wanted.next_write).min(cutoff);
        }
        if self.renewal.is_none() {
            next = next.min(self.renewal_at());
        }
        next.max(now + 200)
    }

    /// When the session, or the held lease, is to be renewed.
    fn renewal_at(&self) -> Micros {
        let life = match (&self.session, self.stage) {
            (Some(session), _) => &session.life,
            (None, Stage::Held) => match &self.wanted {
                Some(wanted) => &wanted.life,
                None => return Micros::MAX,
            },
            _ => return Micros::MAX,
        };
        if life.confirmed().is_none() {
            return Micros::MAX;
        }
        let jitter = [0.0, 0.25, 0.5, 0.75, 1.0][self.number % 5];
        self.clock.when_stamp(life.renewal_due(jitter)).max(self.renew_again_at)
    }
}

impl World {
    /// A client's timer has come.
    pub(crate) fn client_timer(&mut self, ix: ClientIx, life: u64, at: Micros) {
        let client = &mut self.clients[ix];
        if client.life != life || client.timer_at != Some(at) || client.is_dead || client.is_paused {
            return;
        }
        client.timer_at = None;
        let due_at = client.due_at;
        if due_at > self.now { self.set_client_timer(ix, due_at) } else { self.client_step(ix) }
    }

    /// Does whatever is due.
    fn client_step(&mut self, ix: ClientIx) {
        if self.mistake == Some(Mistake::DeadRenewed) && self.haunted_at <= self.now {
            self.haunted_at = self.now + 300 * MS;
            self.renew_the_dead(ix);
        }
        self.check_timeouts(ix);
        self.check_hold(ix);
        let now = self.now;
        if let Some((_, before)) = self.clients[ix].again.take_if(|(at, _)| *at <= now) {
            self.ask_again(ix, before);
        }
        if self.clients[ix].renewal.is_none() && self.clients[ix].renewal_at() <= self.now {
            self.renew(ix);
        }
        if self.clients[ix].stage == Stage::Idle && self.clients[ix].idle_until <= self.now {
            self.begin(ix);
        }
        self.arm_client(ix);
    }

    pub(super) fn arm_client(&mut self, ix: ClientIx) {
        let at = self.clients[ix].next_timer(self.now);
        self.set_client_timer(ix, at);
    }

    pub(crate) fn set_client_timer(&mut self, ix: ClientIx, at: Micros) {
        let client = &mut self.clients[ix];
        client.due_at = at;
        if client.is_dead || client.timer_at.is_some_and(|set| set <= at && set > self.now) {
            return;
        }
        client.timer_at = Some(at);
        let life = client.life;
        self.push(at, Event::Client { client: ix, life, at });
    }

    fn check_timeouts(&mut self, ix: ClientIx) {
        let now = self.now;
        if let Some(main) = self.clients[ix].main.take_if(|main| main.times_out_at() <= now) {
            self.judge_timeout(main.sent_at);
            self.unanswered(ix, main);
        }
        if let Some(renewal) = self.clients[ix].renewal.take_if(|renewal| renewal.times_out_at() <= now) {
            self.judge_timeout(renewal.sent_at);
            self.missed_renewal(ix);
        }
    }

    pub(super) fn missed_renewal(&mut self, ix: ClientIx) {
        let client = &mut self.clients[ix];
        client.renew_again_at = self.now + 60 * MS;
        client.node += 1;
        if let Some(session) = &mut client.session {
            session.life.miss("no answer");
        } else if let Some(wanted) = &mut client.wanted {
            wanted.life.miss("no answer");
        }
    }

    /// Stops in time (K4), writes, and gives back when it has held long enough.
    fn check_hold(&mut self, ix: ClientIx) {
        if self.clients[ix].stage != Stage::Held {
            return;
        }
        let phase = self.clients[ix].phase(self.now);
        let Some(wanted) = &mut self.clients[ix].wanted else { return };
        if phase >= Phase::Uncertain || wanted.hold_until <= self.now {
            self.end_belief(ix);
            return self.give_back(ix);
        }
        if wanted.next_write <= self.now {
            wanted.next_write = self.now + self.chance.within(5, 400) * MS;
            let (resource, token) = (wanted.resource, wanted.token);
            let fate = self.mix.fate(&mut self.chance, self.now);
            self.faults += fate.faults;
            if let Some(at) = fate.first {
                self.push(at, Event::Write { client: ix, resource, token });
            }
        }
    }

    /// The client believes in its lock no longer: until when it did is written down.
    pub(crate) fn end_belief(&mut self, ix: ClientIx) {
        let now = self.now;
        let client = &mut self.clients[ix];
        let deadline = client.lease_life().map_or(0, |life| client.clock.when_stamp(life.deadline()));
        let Some(wanted) = &mut client.wanted else { return };
        let Some(from) = wanted.believed_from.take() else { return };
        let until = now.min(deadline);
        let (token, permit, shared) = (wanted.token, wanted.permit, mode(wanted.sharing.mode()));
        let resource = Arc::clone(&self.resources[wanted.resource]);
        let client = Arc::clone(&client.name);
        self.record(Record::Held { at: now, from, until, client, resource, token, mode: shared, permit });
    }

    /// The client's process ends. Another takes its place later.
    pub(crate) fn crash_client(&mut self, ix: ClientIx) {
        if self.clients[ix].is_dead {
            return;
        }
        self.end_belief(ix);
        let client = &mut self.clients[ix];
        client.is_dead = true;
        client.life += 1;
        if let Some(wanted) = client.wanted.take() {
            self.orphaned(Id(*wanted.lease.as_bytes()), wanted.longest_ms);
        }
        let at = self.now + self.chance.within(200, 6_000) * MS;
        self.push(at, Event::WakeClient { client: ix });
    }

    /// The client stands still.
    pub(crate) fn pause_client(&mut self, ix: ClientIx, length: Micros) {
        if !self.clients[ix].is_dead && !self.clients[ix].is_paused {
            self.clients[ix].is_paused = true;
            self.push(self.now + length, Event::WakeClient { client: ix });
        }
    }

    /// A paused client goes on; a dead one is replaced by another.
    pub(crate) fn wake_client(&mut self, ix: ClientIx) {
        let client = &mut self.clients[ix];
        if client.is_dead {
            *client = Client::new(client.number, client.life, client.clock);
        }
        client.is_paused = false;
        for event in std::mem::take(&mut client.waiting) {
            if let Event::ToClient { client, op, epoch, answer } = event {
                self.client_told(client, op, epoch, answer);
            }
        }
        self.clients[ix].timer_at = None;
        self.client_step(ix);
    }

    /// What a client may count on of a promised ttl.
    pub(super) fn trusted(&self, ttl_ms: u64) -> Duration {
        Duration::from_millis(ttl_ms) * self.trust / 100
    }

    /// From when a client counts (K1); one with the mistake, from when the answer is there.
    pub(super) fn counted_from(&self, ix: ClientIx, sent: Stamp) -> Stamp {
        match self.mistake {
            Some(Mistake::CountedFromAnswer) => self.clients[ix].clock.stamp(self.now),
            _ => sent,
        }
    }
}
