//! Every resource that is held, closed by a lock delay, or remembered, in the order of their keys: each tenant's together,
//! by name.

use std::collections::VecDeque;

use leasehold_types::{FencingToken, ResourceKey, limits};

use crate::arena::{Arena, Ix};
use crate::block_map::BlockMap;
use crate::lease::LeaseIx;
use crate::reply::Ending;
use crate::resource::{Delay, Full, Resource};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    by_key: BlockMap<ResourceKey, State>,
    full: Arena<Full>,
}

/// Almost all resources are held by one and have no past, so that costs no more than this.
#[derive(Clone, Copy, Debug)]
enum State {
    HeldBy(LeaseIx),
    Full(Ix<Full>),
}

impl Resources {
    /// What is known of a resource, if anything is.
    pub(crate) fn get(&self, key: &ResourceKey) -> Option<Resource<'_>> {
        self.by_key.get(key).map(|state| self.look_at(state))
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ResourceKey, Resource<'_>)> {
        self.by_key.iter().map(|(key, state)| (key, self.look_at(state)))
    }

    /// Those from this key on.
    pub(crate) fn range_from<'a>(
        &'a self,
        begin: &ResourceKey,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> + use<'a> {
        self.by_key.range_from(begin).map(|(key, state)| (key, self.look_at(state)))
    }

    fn look_at<'a>(&'a self, state: &'a State) -> Resource<'a> {
        match state {
            State::HeldBy(ix) => Resource::HeldBy(ix),
            State::Full(full) => Resource::Full(self.full.get(*full)),
        }
    }

    /// One more holds, with the newest token. Returns the key as it stands here: one allocation of the name serves this
    /// index and every lease.
    pub(crate) fn add_holder(&mut self, key: ResourceKey, ix: LeaseIx) -> ResourceKey {
        let (is_new, key, state) = self.by_key.get_or_insert_with(key, || State::HeldBy(ix));
        if !is_new {
            full_of(state, &mut self.full).holders.push(ix);
        }
        key.clone()
    }

    /// A holder is one no longer, and how that came is kept. Returns when the resource was used before.
    pub(crate) fn end_holder(&mut self, key: &ResourceKey, ix: LeaseIx, ending: Ending, used: u64) -> u64 {
        self.change(key, |full| {
            full.holders.retain(|holder| *holder != ix);
            full.add_ending(ending);
            std::mem::replace(&mut full.used, used)
        })
    }

    pub(crate) fn forget_endings(&mut self, key: &ResourceKey) {
        self.change(key, |full| {
            full.endings = VecDeque::new();
            full.used = 0;
        });
    }

    pub(crate) fn add_delay(&mut self, key: &ResourceKey, delay: Delay) {
        self.change(key, |full| full.delays.push(delay));
    }

    pub(crate) fn remove_delay(&mut self, key: &ResourceKey, token: FencingToken) {
        self.change(key, |full| full.delays.retain(|delay| delay.token != token));
    }

    /// Adds the past of a resource, as a snapshot has it.
    pub(crate) fn restore(&mut self, key: ResourceKey, used: u64, endings: Vec<Ending>, delays: Vec<Delay>) {
        let full = &mut self.full;
        let (_, _, state) = self.by_key.get_or_insert_with(key, || State::Full(full.insert(Full::default())));
        let full = full_of(state, full);
        (full.used, full.delays) = (used, delays);
        endings.into_iter().for_each(|ending| full.add_ending(ending));
    }

    /// Changes a known resource; afterwards it has its smallest form, or is not here if nothing is known any more.
    fn change<R>(&mut self, key: &ResourceKey, change: impl FnOnce(&mut Full) -> R) -> R {
        let state = self.by_key.get_mut(key).expect("only a known resource changes");
        let full = full_of(state, &mut self.full);
        let result = change(full);
        if full.has_no_past()
            && let State::Full(ix) = *state
        {
            match full.holders[..] {
                [] => {
                    self.full.remove(ix);
                    self.by_key.remove(key);
                }
                [only] => {
                    self.full.remove(ix);
                    *state = State::HeldBy(only);
                }
                _ => {}
            }
        }
        result
    }
}

/// A resource in its full form.
fn full_of<'a>(state: &mut State, full: &'a mut Arena<Full>) -> &'a mut Full {
    let ix = match *state {
        State::Full(ix) => ix,
        State::HeldBy(holder) => full.insert(Full { holders: vec![holder], ..Full::default() }),
    };
    *state = State::Full(ix);
    full.get_mut(ix)
}

impl Full {
    /// Drops the oldest ending beyond the bound.
    fn add_ending(&mut self, ending: Ending) {
        if self.endings.len() >= limits::ENDINGS_PER_RESOURCE {
            self.endings.pop_front();
        }
        self.endings.push_back(ending);
    }

    fn has_no_past(&self) -> bool {
        self.endings.is_empty() && self.delays.is_empty() && self.used == 0
    }
}
