//! The simulated world: one true time, events in its order, and everybody they happen to.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Fact, Journaled, Reply, SessionEnd, invariants};
use leasehold_history::{Change, Checker, Hash, Id, Mode, Promises, Record};
use leasehold_journal::{Reader, Room};
use leasehold_node::parts::Warm;
use leasehold_node::{Call, NodeConfig, StartError, SubmitError};
use leasehold_types::{LeaseId, OwnerId, ResourceName, TenantName};

use crate::chance::Chance;
use crate::client::Client;
use crate::clock::{MS, MachineClock, Micros, SECOND};
use crate::engine::{Ask, Engine, Fresh, Told, now};
use crate::event::{ClientIx, Event, OpId};
use crate::fence::Fences;
use crate::mistake::Mistake;
use crate::net::Mix;
use crate::node::{Node, Role};
use crate::options::Options;
use crate::timeline::Timeline;
use crate::trace::Trace;

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Things go wrong.
    Faulty,
    /// Nothing goes wrong any more.
    Healed,
    /// The engine has lost acknowledged writes.
    Regressed,
}

/// What broke, and where it shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The promise.
    pub promise: String,
    /// What was found.
    pub detail: String,
    /// The records that show it, if the history does.
    pub records: Vec<u64>,
}

/// See the module.
pub(crate) struct World {
    pub(crate) now: Micros,
    pub(crate) end: Micros,
    pub(crate) phase: Phase,
    pub(crate) healed_at: Micros,
    pub(crate) regress_after: Option<Micros>,
    /// The newest epoch when the engine lost slots: what it still commits is part of the loss.
    pub(crate) lost_in: u64,
    pub(crate) chance: Chance,
    pub(crate) mix: Mix,
    /// See [`Options::overtaking`].
    pub(crate) overtaking: bool,
    pub(crate) room: Room,
    pub(crate) patience: Duration,
    pub(crate) mistake: Option<Mistake>,
    off: Option<String>,
    pub(crate) engine: Engine,
    pub(crate) nodes: Vec<Node>,
    pub(crate) clients: Vec<Client>,
    pub(crate) fences: Fences,
    pub(crate) resources: Vec<Arc<str>>,
    /// The same as the service knows them, and the others that clients send with every request.
    pub(crate) names: Vec<ResourceName>,
    pub(crate) tenant: TenantName,
    pub(crate) owner: OwnerId,
    pub(crate) watchers: Vec<Watcher>,
    /// Of a promised ttl clients trust so many hundredths, beyond what they leave out for drift anyway.
    pub(crate) trust: u32,
    pub(crate) long_lives: bool,
    pub(crate) fault_gap_ms: u64,
    pub(crate) faults: u64,
    pub(crate) fault_budget: u64,
    pub(crate) commands: u64,
    pub(crate) takeovers: u64,
    pub(crate) unknowns: u64,
    pub(crate) expiries: u64,
    /// Leases of dead clients, and when they must be free.
    pub(crate) orphans: Vec<(Id, Micros)>,
    /// When they are renewed next, by somebody who should not.
    pub(crate) haunted_at: Micros,
    pub(crate) failure: Option<Failure>,
    pub(crate) trace: Trace,
    checker: Option<Checker>,
    kept: Option<Vec<Record>>,
    timeline: Timeline,
    last_op: OpId,
}

/// Somebody who watches.
pub(crate) struct Watcher {
    name: Arc<str>,
    pub(crate) node: Option<(usize, u64)>,
}

impl World {
    pub(crate) fn new(options: &Options) -> Self {
        let mut chance = Chance::new(options.seed);
        let kind = options.kind(&mut chance);
        let mut promises = Promises::ALL;
        if let Some(off) = options.off.as_deref().and_then(leasehold_history::Promise::parse) {
            promises = promises.without(off);
        }
        if kind.wide_clocks {
            promises = promises.without(leasehold_history::Promise::S9);
        }
        let rates = if kind.wide_clocks { (900, 1_100) } else { (990, 1_010) };
        let nodes = (0..kind.nodes).map(|n| Node::new(n, MachineClock::new(chance.within(rates.0, rates.1))));
        let nodes: Vec<Node> = nodes.collect();
        let clients = (0..kind.clients)
            .map(|n| Client::new(n, 0, MachineClock::new(chance.within(rates.0, rates.1))))
            .collect();
        let resources: Vec<Arc<str>> = (0..kind.resources).map(|n| format!("r{n}").into()).collect();
        let name = |name: &Arc<str>| ResourceName::new(name).expect("r and a number is a name");
        let names: Vec<ResourceName> = resources.iter().map(name).collect();
        let safety = kind.seconds * SECOND;
        Self {
            now: 0,
            end: safety + kind.heal_seconds * SECOND,
            phase: Phase::Faulty,
            healed_at: Micros::MAX,
            regress_after: kind.regresses.then_some(safety / 2),
            lost_in: 0,
            mix: kind.mix,
            overtaking: options.overtaking,
            room: Room::Plenty,
            patience: Duration::from_millis(1_200),
            mistake: options.mistake,
            off: options.off.clone(),
            engine: Engine::new(options.mistake),
            nodes,
            clients,
            fences: Fences::new(&names),
            names,
            tenant: TenantName::default_tenant(),
            owner: OwnerId::new("someone").expect("a word is a name"),
            resources,
            watchers: (0..2).map(|n| Watcher { name: format!("w{n}").into(), node: None }).collect(),
            trust: if kind.wide_clocks { 83 } else { 100 },
            long_lives: kind.long_lives,
            fault_gap_ms: kind.fault_gap_ms,
            faults: 0,
            fault_budget: options.most_faults.unwrap_or(u64::MAX),
            commands: 0,
            takeovers: 0,
            unknowns: 0,
            expiries: 0,
            orphans: Vec::new(),
            haunted_at: 0,
            failure: None,
            trace: Trace::default(),
            checker: Some(Checker::new(promises)),
            kept: options.keep.then(Vec::new),
            timeline: Timeline::default(),
            last_op: 0,
            chance,
        }
    }

    /// Runs to the end, or to the first broken promise.
    pub(crate) fn run(&mut self) {
        for node in 0..self.nodes.len() {
            self.push(1 + node as u64 * 1_000, Event::Start { node });
        }
        for client in 0..self.clients.len() {
            let at = 50 * MS + self.chance.below(200 * MS);
            self.set_client_timer(client, at);
        }
        self.push(500 * MS, Event::Fault);
        let heal_at = self.end.saturating_sub(Options::HEAL_SECONDS * SECOND);
        self.push(heal_at, Event::Heal);
        while self.failure.is_none() {
            let Some((at, event)) = self.timeline.pop() else { break };
            if at > self.end {
                break;
            }
            self.now = at;
            self.happen(event);
        }
        self.finish();
    }

    fn happen(&mut self, event: Event) {
        // What comes to a node that stands still waits there.
        if let Some(node) = event.of_node().filter(|node| self.nodes[*node].is_paused) {
            return self.nodes[node].waiting.push(event);
        }
        match event {
            Event::Client { client, life, at } => self.client_timer(client, life, at),
            Event::ToNode { node, client, op, call } => self.node_asked(node, client, op, call),
            Event::ToClient { client, op, epoch, answer } => {
                self.client_told(client, op, epoch, answer);
            }
            Event::ToEngine { node, life, op, ask } => self.engine_asked(node, life, op, ask),
            Event::Land { node, life, op, ask } => self.engine_does(node, life, op, ask),
            Event::FromEngine { node, life, op, told } if self.nodes[node].life == life => {
                self.node_told(node, op, told);
            }
            Event::NodeTimer { node, life, at }
                if self.nodes[node].life == life && self.nodes[node].timer_at == Some(at) =>
            {
                self.node_timer(node);
            }
            Event::OpTimeout { node, life, op } if self.nodes[node].life == life => {
                self.claim_timed_out(node, op);
                self.work_timed_out(node, op);
            }
            Event::Retry { node, life, op } if self.nodes[node].life == life => self.retry(node, op),
            Event::Write { client, resource, token } => self.fence_asked(client, resource, token),
            Event::Install { claim, slot, keep } => {
                self.engine.install_snapshot(claim, leasehold_types::Slot(slot), keep);
            }
            Event::Start { node } if matches!(self.nodes[node].role, Role::Down) => self.start_node(node),
            Event::Wake { node, suspended } => self.wake_node(node, suspended),
            Event::WakeClient { client } => self.wake_client(client),
            Event::Fault => self.fault(),
            Event::Over(fault) => self.over(fault),
            Event::Heal => self.heal(),
            _ => {}
        }
    }

    fn wake_node(&mut self, ix: usize, suspended: Micros) {
        if !self.nodes[ix].is_paused {
            return;
        }
        self.nodes[ix].is_paused = false;
        self.nodes[ix].clock.suspend(suspended);
        for event in std::mem::take(&mut self.nodes[ix].waiting) {
            self.happen(event);
        }
        self.nodes[ix].timer_at = None;
        self.node_timer(ix);
    }

    /// Puts an event at its time.
    pub(crate) fn push(&mut self, at: Micros, event: Event) {
        self.timeline.push(at, event);
    }

    pub(crate) fn next_op(&mut self) -> OpId {
        self.last_op += 1;
        self.last_op
    }

    pub(crate) fn push_op_timeout(&mut self, node: usize, op: OpId, at: Micros) {
        let life = self.nodes[node].life;
        self.push(at.max(self.now), Event::OpTimeout { node, life, op });
    }

    /// A node asks the engine something, over the network.
    pub(crate) fn ask_engine(&mut self, node: usize, op: OpId, ask: Ask) {
        let life = self.nodes[node].life;
        let fate = self.mix.fate(&mut self.chance, self.now);
        self.faults += fate.faults;
        if self.nodes[node].is_cut {
            return;
        }
        // The engine may do it twice; an answer to the second copy finds nobody, as on a connection.
        if let Some(at) = fate.second {
            self.push(at, Event::ToEngine { node, life: u64::MAX, op, ask: ask.clone() });
        }
        if let Some(at) = fate.first {
            self.push(at, Event::ToEngine { node, life, op, ask });
        }
    }

    fn engine_asked(&mut self, node: usize, life: u64, op: OpId, ask: Ask) {
        match &ask {
            Ask::Append { claim, .. } if self.engine.checks_apart() => {
                if self.engine.is_current(*claim) {
                    let at = self.now + self.chance.within(1, 30 * MS);
                    self.push(at, Event::Land { node, life, op, ask });
                } else {
                    self.tell_node(node, life, op, Told::Outcome(leasehold_journal::Outcome::Fenced));
                }
            }
            _ => self.engine_does(node, life, op, ask),
        }
    }

    fn engine_does(&mut self, node: usize, life: u64, op: OpId, ask: Ask) {
        let told = match ask {
            Ask::Claim { expected, nonce } => self.engine_claims(node, expected, nonce),
            Ask::Append { claim, batch, attempt } => {
                let (told, fresh) = self.engine.append(claim, &batch, attempt);
                if let Some(fresh) = fresh {
                    self.committed(fresh);
                }
                told
            }
            Ask::Confirm { claim } => self.engine.confirm(claim),
            Ask::Beat { claim } => self.engine.beat(claim),
        };
        self.tell_node(node, life, op, told);
    }

    fn engine_claims(
        &mut self,
        node: usize,
        expected: leasehold_types::Epoch,
        nonce: leasehold_types::Nonce,
    ) -> Told {
        let cluster = self.chance.id();
        let told = self.engine.claim(expected, nonce, cluster);
        if let Told::Claimed(Ok(claim)) = &told {
            let (epoch, tail) = {
                let opened = self.engine.opened(*claim);
                (opened.epoch.0, opened.tail.slot.0)
            };
            let name = Arc::clone(&self.nodes[node].name);
            self.record(Record::Claim { at: self.now, node: name, epoch, tail });
            // Whoever never saw what was lost cannot notice that it is; what follows is the operator's affair.
            if self.phase == Phase::Regressed && self.known_slot(node) <= tail {
                self.end = self.now;
            }
        }
        told
    }

    fn tell_node(&mut self, node: usize, life: u64, op: OpId, told: Told) {
        let fate = self.mix.fate(&mut self.chance, self.now);
        self.faults += fate.faults;
        if self.nodes[node].is_cut {
            return;
        }
        if let Some(at) = fate.first {
            self.push(at, Event::FromEngine { node, life, op, told });
        }
    }

    /// The engine has committed a slot: everybody who judges learns of it.
    fn committed(&mut self, fresh: Fresh) {
        if self.phase == Phase::Regressed && fresh.batch.epoch().0 <= self.lost_in {
            return;
        }
        let changes: Vec<Change> = fresh.facts.iter().filter_map(|fact| self.change(fact)).collect();
        let expired = changes
            .iter()
            .filter(|change| matches!(change, Change::Expired { .. } | Change::SessionExpired { .. }));
        self.expiries += expired.count() as u64;
        self.judge_expiries(&changes);
        self.record(Record::Commit {
            at: self.now,
            slot: fresh.batch.slot.0,
            epoch: fresh.batch.epoch().0,
            prev: Hash(fresh.batch.prev_hash.0),
            hash: Hash(fresh.batch.hash().0),
            changes,
            events: None,
        });
        if self.failure.is_none() && self.phase != Phase::Regressed {
            self.engine.follow(&fresh.facts, &mut Vec::new());
        }
    }

    fn change(&self, fact: &Fact) -> Option<Change> {
        let id = |lease: &leasehold_types::LeaseId| Id(*lease.as_bytes());
        let of = |session: &leasehold_types::SessionId| Id(*session.as_bytes());
        Some(match fact {
            Fact::Granted(granted) => {
                let number: usize = granted.resource.name()[1..].parse().expect("r and a number");
                let life = granted.session.as_ref().map_or(id(&granted.lease_id), of);
                Change::Granted {
                    lease: id(&granted.lease_id),
                    life,
                    resource: Arc::clone(&self.resources[number]),
                    token: granted.token.get(),
                    mode: mode(granted.sharing.mode()),
                    permit: granted.permit.map(|permit| permit.0),
                }
            }
            Fact::Released { lease_id, .. } => Change::Released { lease: id(lease_id) },
            Fact::Expired { lease_id, max_hold, .. } => {
                Change::Expired { lease: id(lease_id), max_hold: *max_hold }
            }
            Fact::SessionEnded { session_id, cause: SessionEnd::Expired, .. } => {
                Change::SessionExpired { session: of(session_id) }
            }
            Fact::SessionEnded { session_id, .. } => Change::SessionClosed { session: of(session_id) },
            Fact::ForceReleased(forced) => {
                Change::Forced { leases: forced.lease_ids.iter().map(id).collect() }
            }
            _ => return None,
        })
    }

    /// A node answers a client, over the network.
    pub(crate) fn send_answer(
        &mut self,
        node: usize,
        client: ClientIx,
        op: OpId,
        epoch: Option<u64>,
        answer: Result<Reply, SubmitError>,
    ) {
        let fate = self.mix.fate(&mut self.chance, self.now);
        self.faults += fate.faults;
        if self.nodes[node].is_alone {
            return;
        }
        if let Some(at) = fate.first {
            let late = self.overtaken();
            self.push(at + late, Event::ToClient { client, op, epoch, answer: Box::new(answer) });
        }
    }

    /// How much later an answer comes that is to be overtaken by others, but not given up for lost.
    fn overtaken(&mut self) -> Micros {
        if !self.overtaking || self.phase != Phase::Faulty || !self.chance.per_mille(330) {
            return 0;
        }
        self.faults += 1;
        self.chance.within(50, 950) * MS
    }

    /// A client asks a node, over the network. What arrives twice is a second attempt, of which nobody hears.
    pub(crate) fn ask_node(
        &mut self,
        node: usize,
        client: ClientIx,
        op: OpId,
        call: Box<Call>,
        shown: &leasehold_history::Call,
    ) {
        let fate = self.mix.fate(&mut self.chance, self.now);
        self.faults += fate.faults;
        if let Some(at) = fate.second {
            let copy = self.next_op();
            let name: Arc<str> = "network".into();
            self.record(Record::Invoke { at: self.now, op: copy, client: name, call: shown.clone() });
            self.push(at, Event::ToNode { node, client, op: copy, call: call.clone() });
        }
        if let Some(at) = fate.first {
            self.push(at, Event::ToNode { node, client, op, call });
        }
    }

    /// The active node makes a snapshot beside its loop, and drops what it covers a little later.
    pub(crate) fn compact(&mut self, ix: usize) {
        let Some(active) = self.nodes[ix].active() else { return };
        let (claim, known) = (active.claim, active.state.tail().slot);
        let Ok(mut reader) = self.engine.reader() else { return };
        let (Ok(head), Ok(mut warm)) = (self.engine.head(), load(&mut *reader)) else { return };
        if now(warm.follow(head.cluster, head.tail, &mut *reader)).is_err() {
            return;
        }
        let tail = warm.tail();
        // A slot in doubt is appended again, and must be there then: the node covers what it knows to be committed alone.
        if tail.slot > known {
            return;
        }
        let is_stored = match self.mistake {
            Some(Mistake::SnapshotForgets) => self.engine.store_snapshot(claim, tail, &Journaled::new()),
            Some(Mistake::SnapshotAdds) => {
                let mut state = warm.into_state();
                let (tenant, lease_id) = (self.tenant.clone(), LeaseId::from_bytes(self.chance.id()));
                state.replay(&Fact::IdClosed { tenant, lease_id, key: None }, &mut Vec::new());
                self.engine.store_snapshot(claim, tail, &state)
            }
            _ => self.engine.store_snapshot(claim, tail, warm.state()),
        };
        if is_stored {
            let (delay, keep) = (self.chance.below(800 * MS), self.chance.below(4));
            self.push(self.now + 1 + delay, Event::Install { claim, slot: tail.slot.0, keep });
        }
    }

    /// Watchers whose node does not serve any more go to one that does.
    pub(crate) fn attach_watchers(&mut self) {
        let serving = self.nodes.iter().rposition(Node::is_active);
        let Some(ix) = serving else { return };
        let life = self.nodes[ix].life;
        if self.mistake == Some(Mistake::WatchersForgotten) && self.takeovers > 1 {
            return;
        }
        let Some(slot) = self.nodes[ix].active().map(|active| active.state.tail().slot.0 + 1) else { return };
        for watcher in 0..self.watchers.len() {
            let is_served =
                self.watchers[watcher].node.is_some_and(|(node, life)| self.nodes[node].serves_in(life));
            if !is_served {
                self.watchers[watcher].node = Some((ix, life));
                let stream = Arc::clone(&self.watchers[watcher].name);
                self.record(Record::Compacted { at: self.now, stream, slot });
            }
        }
    }

    /// A node shows the events of a slot that it knows to be committed.
    pub(crate) fn show(&mut self, ix: usize, slot: u64, events: usize) {
        let life = self.nodes[ix].life;
        for watcher in 0..self.watchers.len() {
            if self.watchers[watcher].node != Some((ix, life)) {
                continue;
            }
            for n in 0..u32::try_from(events).unwrap_or(0) {
                if self.mistake == Some(Mistake::EventDropped) && self.chance.per_mille(5) {
                    continue;
                }
                let stream = Arc::clone(&self.watchers[watcher].name);
                self.record(Record::Event { at: self.now, stream, slot, n });
            }
        }
    }

    /// Shows a record to the checker.
    pub(crate) fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        self.trace.record(&record);
        let taken = self.checker.as_mut().map(|checker| checker.take(&record));
        if let Some(kept) = &mut self.kept {
            kept.push(record);
        }
        if let Some(Err(violation)) = taken {
            self.fail(violation);
        }
    }

    pub(crate) fn keeps_records(&self) -> bool {
        self.kept.is_some()
    }

    pub(crate) fn into_records(self) -> Vec<Record> {
        self.kept.unwrap_or_default()
    }

    /// Whether this promise is switched off, to show what it is needed for.
    pub(crate) fn is_off(&self, promise: &str) -> bool {
        self.off.as_deref() == Some(promise)
    }

    /// A promise of the table.
    pub(crate) fn must(&mut self, promise: &str, holds: Result<(), invariants::Violation>) {
        if let Err(broken) = holds {
            self.must_be(promise, false, || broken.detail);
        }
    }

    /// A promise that the simulator alone can judge.
    pub(crate) fn must_be(&mut self, promise: &str, holds: bool, detail: impl FnOnce() -> String) {
        if !holds && self.failure.is_none() && !self.is_off(promise) {
            self.failure =
                Some(Failure { promise: promise.to_owned(), detail: detail(), records: Vec::new() });
        }
    }

    fn fail(&mut self, violation: leasehold_history::Violation) {
        let leasehold_history::Violation { promise, detail, records } = violation;
        self.failure.get_or_insert(Failure { promise: promise.to_string(), detail, records });
    }

    fn finish(&mut self) {
        if self.failure.is_none() {
            self.judge_end();
            (0..self.clients.len()).for_each(|client| self.end_belief(client));
        }
        let verdict = self.checker.take().map(Checker::finish);
        if let (None, Some(Err(violation))) = (&self.failure, verdict) {
            self.fail(violation);
        }
    }
}

pub(crate) fn mode(mode: leasehold_types::Mode) -> Mode {
    match mode {
        leasehold_types::Mode::Exclusive => Mode::Exclusive,
        leasehold_types::Mode::Shared => Mode::Shared,
        leasehold_types::Mode::Semaphore => Mode::Semaphore,
    }
}

/// What a node has in memory when it begins to follow a journal.
pub(crate) fn load(reader: &mut dyn Reader) -> Result<Warm, StartError> {
    let config = NodeConfig { ring_events: 1, ring_bytes: 1, ..NodeConfig::new("sim", "") };
    now(Warm::load(&config, reader))
}
