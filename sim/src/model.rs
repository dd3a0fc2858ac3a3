//! The protocol of take-over, renewal, unknown outcome and compaction as a model, of which *every* interleaving is
//! looked at: two nodes, two clients, one lock.
//!
//! Time is counted in ticks. A ttl is one of them, counted by a client from sending, by a node from deciding, and
//! again from taking over. Everything else happens in any order: a message may arrive now, later or never, a
//! node may stand still or crash between any two steps.

mod client;
mod engine;
mod liveness;
mod node;
mod properties;
mod step;

use stateright::{Checker, HasDiscoveries, Model, Property};

pub use engine::{Append, Engine, Entry, Fact};
pub use node::{Active, Node, Work};
pub use step::Step;

use crate::Mistake;
use client::Client;

/// How much may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Ticks of time.
    pub ticks: u8,
    /// Times that a client may ask.
    pub asks: u8,
    /// Times that a node may take over, the first not counted.
    pub takeovers: u8,
    /// Crashes of nodes.
    pub crashes: u8,
    /// Pauses of nodes.
    pub pauses: u8,
    /// Outcomes that are lost.
    pub unknowns: u8,
    /// Compactions.
    pub compactions: u8,
    /// A deliberate mistake.
    pub mistake: Option<Mistake>,
}

impl Scope {
    /// What is explored completely in the test run.
    pub const FLOOR: Self = Self {
        ticks: 1,
        asks: 1,
        takeovers: 2,
        crashes: 1,
        pauses: 1,
        unknowns: 1,
        compactions: 0,
        mistake: None,
    };

    /// What is explored by hand.
    pub const GOAL: Self = Self { ticks: 2, compactions: 1, ..Self::FLOOR };
}

/// Everything at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct System {
    pub(crate) now: u8,
    pub(crate) engine: Engine,
    pub(crate) nodes: [Node; 2],
    pub(crate) clients: [Client; 2],
    pub(crate) takeovers: u8,
    pub(crate) crashes: u8,
    pub(crate) pauses: u8,
    pub(crate) unknowns: u8,
    pub(crate) compactions: u8,
    /// A promise that a step has broken, where the state alone does not show it.
    pub(crate) broken: Option<&'static str>,
}

impl Model for Scope {
    type State = System;
    type Action = Step;

    fn init_states(&self) -> Vec<System> {
        let mut nodes = [Node::default(), Node::default()];
        nodes[0].active = Some(Active::new(1, &[], 0));
        let engine = Engine { epoch: 1, owner: 0, ..Engine::default() };
        vec![System {
            now: 0,
            engine,
            nodes,
            clients: Default::default(),
            takeovers: 0,
            crashes: 0,
            pauses: 0,
            unknowns: 0,
            compactions: 0,
            broken: None,
        }]
    }

    fn actions(&self, system: &System, steps: &mut Vec<Step>) {
        if system.broken.is_none() {
            step::possible(self, system, steps);
        }
    }

    fn next_state(&self, system: &System, step: Step) -> Option<System> {
        let mut next = system.clone();
        step.take(self, &mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// What came of looking at everything.
#[derive(Debug)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Whether there are no others.
    pub is_complete: bool,
    /// Promises that do not hold, each with the steps that lead there.
    pub broken: Vec<(&'static str, Vec<Step>)>,
    /// Good things that never happen: the model would prove nothing.
    pub unreached: Vec<&'static str>,
}

/// Looks at every interleaving within the scope, on so many threads.
///
/// Gives up after about `most` steps; [`Explored::is_complete`] says whether it did.
pub fn explore(scope: Scope, threads: usize, most: usize) -> Explored {
    if scope.mistake.is_some() {
        return find(scope, threads, most);
    }
    // In any order, as long as it is everything: going deep first keeps few states in memory, and of those that were seen
    // a number alone.
    let checker = scope.checker().threads(threads).target_state_count(most);
    let explored = Explored::of(&checker.finish_when(HasDiscoveries::AllFailures).spawn_dfs().join(), most);
    if explored.broken.is_empty() { explored } else { find(scope, threads, most) }
}

/// Looks for the first broken promise, of which the shortest way to it is found first.
fn find(scope: Scope, threads: usize, most: usize) -> Explored {
    let checker = scope.checker().threads(threads).target_state_count(most);
    Explored::of(&checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join(), most)
}

impl Explored {
    fn of(checker: &impl Checker<Scope>, most: usize) -> Self {
        let discoveries = checker.discoveries();
        let is_complete = checker.state_count() < most;
        let mut explored = Self {
            states: checker.unique_state_count(),
            is_complete,
            broken: Vec::new(),
            unreached: Vec::new(),
        };
        for property in properties::all() {
            let found = discoveries.get(property.name);
            match (property.expectation, found) {
                (stateright::Expectation::Always, Some(path)) => {
                    explored.broken.push((property.name, path.clone().into_actions()));
                }
                (stateright::Expectation::Sometimes, None) => explored.unreached.push(property.name),
                _ => {}
            }
        }
        explored
    }
}
