//! A node that waits for its turn: looks at the journal, follows it, claims it.

use leasehold_core::{LockTable, Settings, invariants};
use leasehold_history::Record;
use leasehold_journal::{OpenError, ReadError, Sighting};
use leasehold_node::StartError;
use leasehold_node::parts::{LOOK, ServingTime, Vigil, WITNESS_EVERY, Warm};
use leasehold_node::state::State;
use leasehold_types::{Epoch, Nonce, Slot};

use super::{Active, Role};
use crate::clock::MS;
use crate::engine::{Ask, ClaimIx, now};
use crate::event::OpId;
use crate::mistake::Mistake;
use crate::world::{Phase, World, load};

/// See the module.
pub(crate) struct Standby {
    vigil: Vigil,
    warm: Option<Warm>,
    /// A claim that was not answered yet.
    claiming: Option<(OpId, Nonce)>,
    next_witness: std::time::Duration,
}

impl Standby {
    pub(crate) fn new(vigil: Vigil) -> Self {
        Self { vigil, warm: None, claiming: None, next_witness: std::time::Duration::ZERO }
    }

    pub(crate) fn is_claiming(&self) -> bool {
        self.claiming.is_some()
    }
}

impl World {
    /// One look at the journal, and a claim when it is this node's turn.
    pub(crate) fn look(&mut self, ix: usize) {
        let local = self.nodes[ix].clock.read(self.now).monotonic;
        let chance = self.chance.unit();
        // A node waits for its claim before it looks again.
        if self.standby(ix).claiming.is_some() {
            let at = self.nodes[ix].clock.when(local + LOOK);
            return self.set_node_timer(ix, at);
        }
        let seen = if self.nodes[ix].is_cut { Err(no_answer()) } else { self.follow(ix) };
        match seen {
            Ok(()) => {}
            // Perhaps nobody has founded it.
            Err(StartError::Read(ReadError::Unavailable(_) | ReadError::NotFounded))
                if self.engine.tail().slot == Slot(0) =>
            {
                self.claim(ix, Epoch(0));
            }
            Err(
                StartError::Open(OpenError::Unavailable(_))
                | StartError::Read(ReadError::Unavailable(_) | ReadError::NotFounded),
            ) => {
                self.standby(ix).vigil.saw_nothing(chance);
            }
            Err(StartError::Read(ReadError::Replaced)) => {}
            Err(error) => return self.halt(ix, &error),
        }
        let Role::Standby(standby) = &self.nodes[ix].role else { return };
        let turn = standby.warm.as_ref().and_then(|warm| {
            let caught_up = standby.vigil.head().is_some_and(|head| head.tail == warm.tail());
            standby.vigil.turn(local, warm.resigned().filter(|_| caught_up))
        });
        if let Some(expected) = turn.filter(|_| self.mistake != Some(Mistake::NobodyTakesOver)) {
            self.claim(ix, expected);
        }
        let at = self.nodes[ix].clock.when(local + LOOK);
        self.set_node_timer(ix, at);
    }

    /// A standby that is told not to be patient: two nodes duel.
    pub(crate) fn duel(&mut self, ix: usize) {
        let Role::Standby(standby) = &self.nodes[ix].role else { return };
        if let Some(epoch) = standby.vigil.head().map(|head| head.epoch) {
            self.claim(ix, epoch);
        }
    }

    fn follow(&mut self, ix: usize) -> Result<(), StartError> {
        let local = self.nodes[ix].clock.read(self.now).monotonic;
        let (head, mut reader) = (self.engine.head()?, self.engine.reader()?);
        let chance = self.chance.unit();
        let standby = self.standby(ix);
        let mut warm = match standby.warm.take() {
            Some(warm) => warm,
            None => load(&mut *reader)?,
        };
        let follows = now(warm.follow(head.cluster, head.tail, &mut *reader));
        let tail = warm.tail();
        let standby = self.standby(ix);
        standby.warm = Some(warm);
        follows?;
        standby.vigil.saw(head, local, chance);
        if local >= standby.next_witness {
            standby.next_witness = local + WITNESS_EVERY;
            let witness = leasehold_journal::Witness {
                cluster: head.cluster,
                tail,
                epoch: head.epoch,
                token: None,
                directory: None,
                generation: None,
                claimed: None,
            };
            self.bear_witness(ix, witness);
        }
        Ok(())
    }

    fn claim(&mut self, ix: usize, expected: Epoch) {
        let (op, nonce) = (self.next_op(), Nonce::from_bytes(self.chance.id()));
        let standby = self.standby(ix);
        if standby.claiming.is_some() {
            return;
        }
        standby.claiming = Some((op, nonce));
        self.say_what_was_seen(ix);
        self.ask_engine(ix, op, Ask::Claim { expected, nonce });
        self.push_op_timeout(ix, op, self.now + 900 * MS);
    }

    /// What a node has followed in memory it has seen as well.
    fn say_what_was_seen(&mut self, ix: usize) {
        if let Some(slot) = self.standby(ix).warm.as_ref().map(|warm| warm.tail().slot.0) {
            let node = std::sync::Arc::clone(&self.nodes[ix].name);
            self.record(Record::Seen { at: self.now, node, slot });
        }
    }

    /// The largest slot that a node knows to have been committed.
    pub(crate) fn known_slot(&self, ix: usize) -> u64 {
        let node = &self.nodes[ix];
        let followed = match &node.role {
            Role::Standby(standby) => standby.warm.as_ref().map(|warm| warm.tail().slot.0),
            _ => None,
        };
        followed.max(node.witness.as_ref().map(|witness| witness.tail.slot.0)).unwrap_or(0)
    }

    /// The claim was not answered in time.
    pub(crate) fn claim_timed_out(&mut self, ix: usize, op: OpId) {
        let failed = Err(OpenError::Unavailable("no answer in time".to_owned()));
        self.claimed(ix, op, failed);
    }

    /// A claim was answered.
    pub(crate) fn claimed(&mut self, ix: usize, op: OpId, claimed: Result<ClaimIx, OpenError>) {
        let Role::Standby(standby) = &mut self.nodes[ix].role else { return };
        let Some((_, nonce)) = standby.claiming.take_if(|(claiming, _)| *claiming == op) else { return };
        let ready = claimed.map_err(StartError::from).and_then(|claim| self.make_ready(ix, claim, nonce));
        match ready {
            Ok(active) => {
                let node = &mut self.nodes[ix];
                node.life += 1;
                node.own = Some(nonce);
                node.timer_at = None;
                node.role = Role::Active(Box::new(active));
                self.took_over(ix);
            }
            Err(StartError::Open(OpenError::Unavailable(_) | OpenError::LostDuel(_)))
            | Err(StartError::Read(ReadError::Unavailable(_) | ReadError::Replaced)) => {
                let local = self.nodes[ix].clock.read(self.now).monotonic;
                let chance = self.chance.unit();
                self.standby(ix).vigil.back_off(local, chance);
            }
            Err(error) => self.halt(ix, &error),
        }
    }

    /// Checks the witness, replays what is missing, restores: as the node does before it serves.
    fn make_ready(&mut self, ix: usize, claim: ClaimIx, nonce: Nonce) -> Result<Active, StartError> {
        let ignores = self.mistake == Some(Mistake::RegressionIgnored);
        let warm = self.standby(ix).warm.take().filter(|_| !ignores);
        let witness = self.nodes[ix].witness.clone().filter(|_| !ignores);
        let opened = self.engine.opened(claim);
        if let Some(witness) = witness {
            witness.check(&now(Sighting::of(opened, &witness, None))?)?;
        }
        let mut warm = match warm {
            Some(warm) => warm,
            None => load(&mut *opened.reader)?,
        };
        let (cluster, tail, epoch) = (opened.cluster, opened.tail, opened.epoch);
        warm.must_not_be_ahead(cluster, tail)?;
        now(warm.follow(cluster, tail, &mut *opened.reader))?;
        let limits = opened.writer.limits();
        self.check_replay(claim, &warm);
        let witness = self.witness_of(claim, nonce, epoch);
        self.bear_witness(ix, witness);
        let time = ServingTime::starting(self.nodes[ix].clock.read(self.now));
        let settings = Settings::on(leasehold_types::Durability::Durable);
        let tail = warm.tail();
        let table = LockTable::restore(warm.into_state(), settings, time.now());
        let mut state = State::new(table, epoch, nonce, tail, limits);
        state.took_over(&self.nodes[ix].name, "http://127.0.0.1:1");
        Ok(Active::new(state, time, claim))
    }

    /// S15 and S16: what was replayed, from whatever snapshot, is what every fact ever committed makes.
    fn check_replay(&mut self, claim: ClaimIx, warm: &Warm) {
        // Another may have committed since this claim; then the shadow is further than what was replayed.
        let is_newest = self.engine.is_current(claim) && self.engine.tail() == warm.tail();
        if is_newest && self.phase != Phase::Regressed && !self.is_off("S15") {
            let equal = invariants::states_are_equal(warm.state(), &self.engine.shadow);
            self.must("S15", equal);
        }
    }

    fn halt(&mut self, ix: usize, error: &StartError) {
        self.nodes[ix].life += 1;
        self.nodes[ix].role = Role::Halted;
        let what = format!("{} halts: {error}", self.nodes[ix].name);
        self.record(Record::Fault { at: self.now, what: what.into() });
    }

    fn standby(&mut self, ix: usize) -> &mut Standby {
        match &mut self.nodes[ix].role {
            Role::Standby(standby) => standby,
            _ => panic!("only a standby looks"),
        }
    }
}

fn no_answer() -> StartError {
    StartError::Read(ReadError::Unavailable("cut off".to_owned()))
}
