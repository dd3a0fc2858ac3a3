//! What the connections of one proxy share: the script, the counts, whether bytes pass.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fault::{Chance, Fault};
use super::link::Link;

/// Whether bytes pass at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passage {
    /// Bytes pass.
    #[default]
    Open,
    /// Bytes wait; nobody is told.
    Frozen,
    /// Connections are cut and refused.
    Closed,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    passage: Passage,
    script: VecDeque<Fault>,
    chance: Option<Chance>,
    done: BTreeMap<&'static str, u64>,
    links: BTreeMap<u64, Arc<Link>>,
    next_link: u64,
}

impl Shared {
    pub(super) fn new(target: SocketAddr) -> Self {
        Self { target, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The number of a new connection; `None` if it may not be.
    pub(super) fn enter(&self, link: &Arc<Link>) -> Option<u64> {
        let mut state = self.state();
        if state.ended || state.passage == Passage::Closed {
            return None;
        }
        let number = state.next_link;
        state.next_link += 1;
        state.links.insert(number, Arc::clone(link));
        Some(number)
    }

    pub(super) fn leave(&self, number: u64) {
        self.state().links.remove(&number);
    }

    /// Waits while bytes wait; false once connections are to be cut.
    pub(super) fn may_pass(&self) -> bool {
        let waits = |state: &mut State| !state.ended && state.passage == Passage::Frozen;
        let state = self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        !state.ended && state.passage == Passage::Open
    }

    /// What the request at hand is to suffer: what the script says, else what chance says.
    pub(super) fn next_fault(&self) -> Option<Fault> {
        let mut state = self.state();
        let scripted = state.script.pop_front();
        let fault = scripted.or_else(|| state.chance.as_mut().and_then(Chance::draw))?;
        *state.done.entry(fault.name()).or_default() += 1;
        self.changed.notify_all();
        Some(fault)
    }

    /// Waits, unless the proxy ends.
    pub(super) fn wait(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.state(), time, |state| !state.ended));
    }

    pub(super) fn inject(&self, fault: Fault) {
        self.state().script.push_back(fault);
    }

    pub(super) fn set_chance(&self, chance: Option<Chance>) {
        let mut state = self.state();
        state.chance = chance;
        if state.chance.is_none() {
            state.script.clear();
        }
    }

    pub(super) fn set_passage(&self, passage: Passage) {
        let mut state = self.state();
        state.passage = passage;
        self.changed.notify_all();
        if passage == Passage::Closed {
            state.links.values().for_each(|link| link.cut());
        }
    }

    pub(super) fn done(&self) -> BTreeMap<&'static str, u64> {
        self.state().done.clone()
    }

    /// Whether so many faults were done in time.
    pub(super) fn await_done(&self, count: u64, most: Duration) -> bool {
        let too_few = |state: &mut State| state.done.values().sum::<u64>() < count;
        let waited = self.changed.wait_timeout_while(self.state(), most, too_few);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        self.changed.notify_all();
        state.links.values().for_each(|link| link.cut());
    }

    pub(super) fn is_ended(&self) -> bool {
        self.state().ended
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
