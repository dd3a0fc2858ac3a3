//! What goes wrong, drawn from the seed.

use leasehold_history::Record;
use leasehold_journal::Room;

use crate::clock::{MS, SECOND};
use crate::event::Event;
use crate::net::Mix;
use crate::world::{Phase, World};

/// What is drawn where a node claims without patience.
const CLAIM: u64 = 53;

/// Something that goes wrong and is over some time later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A node is cut off from the engine.
    Cut { node: usize },
    /// A node is cut off from clients.
    Alone { node: usize },
    /// Nobody reaches the engine.
    EngineAway,
    /// The journal has room for endings only.
    NoRoom,
    /// After the last fault, one node must serve by now (L3).
    Judge,
}

impl World {
    /// Draws one fault, does it, and sets the time of the next.
    pub(crate) fn fault(&mut self) {
        if self.phase != Phase::Faulty {
            return;
        }
        let next = self.now + self.chance.within(20, self.fault_gap_ms) * MS;
        self.push(next, Event::Fault);
        if self.fault_budget == 0 {
            return;
        }
        self.fault_budget -= 1;
        let node = self.chance.index(self.nodes.len());
        let client = self.chance.index(self.clients.len());
        let active = self.nodes.iter().position(crate::node::Node::is_active).unwrap_or(node);
        let some_node = if self.chance.per_mille(700) { active } else { node };
        let length = self.chance.within(50, 4_500) * MS;
        self.faults += 1;
        let claims = self.overtaking && self.chance.per_mille(500);
        match if claims { CLAIM } else { self.chance.below(100) } {
            0..12 => {
                self.note(&format!("crash of node-{some_node}"));
                self.crash_node(some_node);
                let at = self.now + self.chance.within(20, 2_500) * MS;
                self.push(at, Event::Start { node: some_node });
            }
            12..26 => self.pause_node(some_node, length, 0),
            26..31 => self.pause_node(some_node, length, length),
            31..41 => {
                self.note(&format!("node-{some_node} is cut off from the engine"));
                self.nodes[some_node].is_cut = true;
                self.push(self.now + length, Event::Over(Fault::Cut { node: some_node }));
            }
            41..47 => {
                self.note(&format!("node-{some_node} is cut off from clients"));
                self.nodes[some_node].is_alone = true;
                self.push(self.now + length, Event::Over(Fault::Alone { node: some_node }));
            }
            47..50 => {
                self.note("the engine is out of reach");
                self.engine.set_available(false);
                self.push(self.now + length / 2, Event::Over(Fault::EngineAway));
            }
            50..CLAIM => {
                self.note("the journal has no room");
                self.set_room(Room::Reserve);
                self.push(self.now + length, Event::Over(Fault::NoRoom));
            }
            CLAIM..60 => {
                self.note(&format!("node-{node} claims without patience"));
                self.duel(node);
            }
            60..66 => self.resign(active),
            66..80 => self.compact(active),
            80..90 => self.crash_client(client),
            _ => self.pause_client(client, length),
        }
        if self.regress_after.is_some_and(|at| self.now >= at) {
            self.regress();
        }
    }

    fn pause_node(&mut self, node: usize, length: u64, suspended: u64) {
        if !self.nodes[node].is_paused {
            self.note(&format!("node-{node} stands still"));
            self.nodes[node].is_paused = true;
            self.push(self.now + length, Event::Wake { node, suspended });
        }
    }

    /// The engine loses acknowledged writes. From then on only one thing is judged: that whoever knows better notices.
    fn regress(&mut self) {
        self.regress_after = None;
        let lost = self.chance.within(1, 20);
        self.note("the engine loses its newest slots");
        self.phase = Phase::Regressed;
        self.lost_in = self.engine.epoch();
        self.engine.lose(lost);
        // The active node would notice at its next append, or append again what it does not know to be lost; what is asked here is
        // whether a claim notices. One that was deposed and has not heard of it is active in its own eyes, too, and one whose claim
        // was not answered yet may be it in the engine's.
        let may_append = |node: &usize| self.nodes[*node].is_active() || self.nodes[*node].is_claiming();
        let active: Vec<_> = (0..self.nodes.len()).filter(may_append).collect();
        for node in active {
            self.crash_node(node);
            self.push(self.now + 100 * MS, Event::Start { node });
        }
        self.end = self.now + 6 * SECOND;
    }

    /// A fault is over.
    pub(crate) fn over(&mut self, fault: Fault) {
        match fault {
            Fault::Cut { node } => self.nodes[node].is_cut = false,
            Fault::Alone { node } => self.nodes[node].is_alone = false,
            Fault::EngineAway => self.engine.set_available(true),
            Fault::NoRoom => self.set_room(Room::Plenty),
            Fault::Judge => self.judge_recovery(),
        }
    }

    /// Nothing goes wrong any more: now what is alive must get on.
    pub(crate) fn heal(&mut self) {
        if self.phase == Phase::Regressed {
            return;
        }
        self.note("healed");
        self.phase = Phase::Healed;
        self.healed_at = self.now;
        self.mix = Mix::default();
        self.engine.set_available(true);
        self.set_room(Room::Plenty);
        for node in 0..self.nodes.len() {
            (self.nodes[node].is_cut, self.nodes[node].is_alone) = (false, false);
            if self.nodes[node].is_paused {
                self.push(self.now + 1, Event::Wake { node, suspended: 0 });
            }
        }
        self.push(self.now + 8 * SECOND, Event::Over(Fault::Judge));
    }

    fn set_room(&mut self, room: Room) {
        self.room = room;
        self.engine.set_room(room);
    }

    fn note(&mut self, what: &str) {
        if self.keeps_records() {
            self.record(Record::Fault { at: self.now, what: what.into() });
        }
    }
}
