//! A simulated node: the real state, vigil and serving time, driven by events instead of threads.

mod active;
mod standby;

use std::sync::Arc;

use leasehold_journal::Witness;
use leasehold_node::parts::Vigil;
use leasehold_node::{Call, SubmitError};
use leasehold_types::{Epoch, Nonce};

use crate::clock::{MachineClock, Micros};
use crate::engine::{ClaimIx, Told};
use crate::event::{ClientIx, Event, OpId};
use crate::world::World;

pub(crate) use active::Active;
pub(crate) use standby::Standby;

/// What a node is at the moment.
pub(crate) enum Role {
    /// The process is not there.
    Down,
    /// Waits for its turn.
    Standby(Box<Standby>),
    /// Serves.
    Active(Box<Active>),
    /// Has stopped for good, and says why to its operator.
    Halted,
}

/// See the module.
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) clock: MachineClock,
    pub(crate) role: Role,
    /// Grows with every start, step down and crash, so that what belongs to an earlier life is not mistaken.
    pub(crate) life: u64,
    /// What is on its disk.
    pub(crate) witness: Option<Witness>,
    /// The nonce of its last claim, known until the process ends.
    pub(crate) own: Option<Nonce>,
    /// Stopped by SIGSTOP or suspended until somebody wakes it; what comes meanwhile waits in its sockets.
    pub(crate) is_paused: bool,
    pub(crate) waiting: Vec<Event>,
    /// Cut off from the engine.
    pub(crate) is_cut: bool,
    /// Cut off from clients.
    pub(crate) is_alone: bool,
    pub(crate) timer_at: Option<Micros>,
}

impl Node {
    pub(crate) fn new(number: usize, clock: MachineClock) -> Self {
        Self {
            name: format!("node-{number}").into(),
            clock,
            role: Role::Down,
            life: 0,
            witness: None,
            own: None,
            is_paused: false,
            waiting: Vec::new(),
            is_cut: false,
            is_alone: false,
            timer_at: None,
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        matches!(self.role, Role::Active(_))
    }

    /// Whether it has asked for the journal and was not answered yet: the engine may know it as the active one.
    pub(crate) fn is_claiming(&self) -> bool {
        matches!(&self.role, Role::Standby(standby) if standby.is_claiming())
    }

    /// Whether it serves, in this life.
    pub(crate) fn serves_in(&self, life: u64) -> bool {
        self.is_active() && self.life == life
    }

    pub(crate) fn active(&mut self) -> Option<&mut Active> {
        match &mut self.role {
            Role::Active(active) => Some(active),
            _ => None,
        }
    }
}

impl World {
    /// The process starts.
    pub(crate) fn start_node(&mut self, ix: usize) {
        let chance = self.chance.unit();
        let node = &mut self.nodes[ix];
        node.life += 1;
        node.own = None;
        node.timer_at = None;
        node.role = Role::Standby(Box::new(Standby::new(Vigil::new(self.patience, None, chance))));
        self.node_timer(ix);
    }

    /// The process is gone: memory, sockets and all. What it sent is still on its way.
    pub(crate) fn crash_node(&mut self, ix: usize) {
        let node = &mut self.nodes[ix];
        node.life += 1;
        node.is_paused = false;
        node.waiting.clear();
        let Role::Active(active) = std::mem::replace(&mut node.role, Role::Down) else { return };
        // Whoever waits sees a broken connection, sooner or later.
        for (client, op) in active.into_calls() {
            self.send_answer(ix, client, op, None, Err(SubmitError::OutcomeUnknown("reset".to_owned())));
        }
        self.attach_watchers();
    }

    /// A timer of this node has come.
    pub(crate) fn node_timer(&mut self, ix: usize) {
        self.nodes[ix].timer_at = None;
        match &self.nodes[ix].role {
            Role::Standby(_) => self.look(ix),
            Role::Active(_) => self.pump(ix),
            Role::Down | Role::Halted => {}
        }
    }

    /// A request of a client has come.
    pub(crate) fn node_asked(&mut self, ix: usize, client: ClientIx, op: OpId, call: Box<Call>) {
        if self.nodes[ix].is_alone {
            return;
        }
        match &mut self.nodes[ix].role {
            Role::Active(active) => {
                active.inbox.push((client, op, call));
                self.pump(ix);
            }
            Role::Standby(_) | Role::Halted => {
                self.send_answer(ix, client, op, None, Err(SubmitError::NotActive));
            }
            // Nobody listens: nothing can have happened.
            Role::Down => self.send_answer(ix, client, op, None, Err(SubmitError::ShuttingDown)),
        }
    }

    /// An answer of the engine has come.
    pub(crate) fn node_told(&mut self, ix: usize, op: OpId, told: Told) {
        match told {
            Told::Claimed(claimed) => self.claimed(ix, op, claimed),
            told => self.worked(ix, op, told),
        }
    }

    /// Sets the node's next timer, unless an earlier one is set.
    pub(crate) fn set_node_timer(&mut self, ix: usize, at: Micros) {
        let at = at.max(self.now + 1);
        let node = &mut self.nodes[ix];
        if node.timer_at.is_none_or(|set| at < set) {
            node.timer_at = Some(at);
            let life = node.life;
            self.push(at, Event::NodeTimer { node: ix, life, at });
        }
    }

    /// Writes down how far the journal was seen (J9).
    pub(crate) fn bear_witness(&mut self, ix: usize, witness: Witness) {
        let slot = witness.tail.slot.0;
        let node = &mut self.nodes[ix];
        if node
            .witness
            .as_ref()
            .is_some_and(|known| known.tail.slot.0 >= slot && known.epoch >= witness.epoch)
        {
            return;
        }
        node.witness = Some(witness);
        let name = Arc::clone(&node.name);
        self.record(leasehold_history::Record::Seen { at: self.now, node: name, slot });
    }

    /// A witness of what this claim found.
    pub(crate) fn witness_of(&mut self, claim: ClaimIx, nonce: Nonce, epoch: Epoch) -> Witness {
        let opened = self.engine.opened(claim);
        Witness {
            cluster: opened.cluster,
            tail: opened.tail,
            epoch,
            token: None,
            directory: None,
            generation: None,
            claimed: Some(nonce),
        }
    }
}
