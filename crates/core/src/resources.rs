//! Every resource that is held, closed by a lock delay, or remembered, in the order of their keys: each tenant's together,
//! by name.
//!
//! The order holds no names: a resource with one holder has its name in that lease, any other in its own record. So
//! whoever asks gives the leases along, and a lease leaves them only after it has left its resource.

use std::cmp::Ordering;
use std::collections::VecDeque;

use leasehold_types::{FencingToken, ResourceKey};

use self::lately::Lately;
use crate::arena::{Arena, Either, EitherIx, Ix};
use crate::blocks::{Blocks, Sought};
use crate::lease::{Lease, LeaseIx};
use crate::recent::Recent;
use crate::reply::Ending;
use crate::resource::{Delay, Full, Resource};

mod lately;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    by_key: Blocks<State, ResourceKey>,
    lately: Lately,
    full: Arena<Full>,
    /// Those with endings, by when they were last used: the oldest is forgotten first.
    recent: Recent,
}

/// Almost all resources are held by one and have no past, so that costs no more than the place of the lease.
type State = EitherIx<Lease, Full>;

impl Resources {
    /// What is known of a resource, if anything is.
    pub(crate) fn get(&self, key: &ResourceKey, leases: &Arena<Lease>) -> Option<Resource<'_>> {
        let state = match self.lately.get(key, &self.full) {
            Some(ix) => Some(State::second(ix)),
            None => self.by_key.get(&self.sought(key, leases)),
        };
        state.map(|state| self.look_at(state))
    }

    /// All of them.
    pub(crate) fn iter<'a>(
        &'a self,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> {
        self.by_key.iter().map(|state| (key_of(state, leases, &self.full), self.look_at(state)))
    }

    /// Those from this key on.
    pub(crate) fn range_from<'a>(
        &'a self,
        begin: &ResourceKey,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> + use<'a> {
        let states = self.by_key.iter_from(&self.sought(begin, leases));
        states.map(|state| (key_of(state, leases, &self.full), self.look_at(state)))
    }

    /// Those with endings and when they were last used, oldest first.
    pub(crate) fn recent(&self) -> impl Iterator<Item = (u64, &ResourceKey)> {
        self.recent.iter(&self.full).map(|full| (full.used, &full.key))
    }

    /// How many have endings.
    pub(crate) fn recent_len(&self) -> usize {
        self.recent.len()
    }

    fn look_at(&self, state: State) -> Resource<'_> {
        match state.get() {
            Either::First(ix) => Resource::HeldBy(ix),
            Either::Second(full) => Resource::Full(self.full.get(full)),
        }
    }

    fn sought<'a>(&'a self, key: &'a ResourceKey, leases: &'a Arena<Lease>) -> ByKey<'a> {
        ByKey { key, leases, full: &self.full }
    }

    /// This lease holds its resource now, with the newest token. If the resource was known, the lease's name is to be
    /// this one: one allocation serves all.
    pub(crate) fn add_holder(&mut self, ix: LeaseIx, leases: &Arena<Lease>) -> Option<ResourceKey> {
        let key = &leases.get(ix).resource;
        let sought = ByKey { key, leases, full: &self.full };
        let is_known = self.lately.get(key, &self.full).is_some();
        if !is_known && self.by_key.insert(&sought, State::first(ix)) {
            return None;
        }
        let full_ix = self.full_ix(key, leases);
        let full = self.full.get_mut(full_ix);
        full.add_holder(ix);
        Some(full.key.clone())
    }

    /// A holder is one no longer, and how that came is kept.
    pub(crate) fn end_holder(&mut self, ix: LeaseIx, leases: &Arena<Lease>, ending: Ending, used: u64) {
        let full_ix = self.full_ix(&leases.get(ix).resource, leases);
        let full = self.full.get_mut(full_ix);
        full.remove_holder(ix);
        full.add_ending(ending);
        let was_used = std::mem::replace(&mut full.used, used) > 0;
        self.recent.touch(full_ix, was_used, &mut self.full);
    }

    /// Forgets the endings of the resource that was not used for the longest time.
    pub(crate) fn forget_oldest(&mut self, leases: &Arena<Lease>) {
        let Some(ix) = self.recent.pop_oldest(&mut self.full) else { return };
        let full = self.full.get_mut(ix);
        (full.endings, full.used) = (VecDeque::new(), 0);
        self.tidy(ix, leases);
    }

    pub(crate) fn add_delay(&mut self, key: &ResourceKey, delay: Delay, leases: &Arena<Lease>) {
        let ix = self.full_ix(key, leases);
        self.full.get_mut(ix).delays.push(delay);
    }

    pub(crate) fn remove_delay(&mut self, key: &ResourceKey, token: FencingToken, leases: &Arena<Lease>) {
        let ix = self.full_ix(key, leases);
        self.full.get_mut(ix).delays.retain(|delay| delay.token != token);
        self.tidy(ix, leases);
    }

    /// Adds the past of a resource, as a snapshot has it. One that was used is in no order until [`Self::restore_order`].
    pub(crate) fn restore(
        &mut self,
        key: &ResourceKey,
        used: u64,
        endings: Vec<Ending>,
        delays: Vec<Delay>,
        leases: &Arena<Lease>,
    ) -> Ix<Full> {
        if self.by_key.get(&self.sought(key, leases)).is_none() {
            let ix = self.full.insert(Full::new(key.clone(), None));
            self.by_key.insert(&ByKey { key, leases, full: &self.full }, State::second(ix));
        }
        let ix = self.full_ix(key, leases);
        let full = self.full.get_mut(ix);
        (full.used, full.delays) = (used, delays);
        endings.into_iter().for_each(|ending| full.add_ending(ending));
        ix
    }

    /// Puts those that were used into their order, oldest first.
    pub(crate) fn restore_order(&mut self, oldest_first: impl Iterator<Item = Ix<Full>>) {
        oldest_first.for_each(|ix| self.recent.touch(ix, false, &mut self.full));
    }

    /// A known resource in its full form.
    fn full_ix(&mut self, key: &ResourceKey, leases: &Arena<Lease>) -> Ix<Full> {
        if let Some(ix) = self.lately.get(key, &self.full) {
            return ix;
        }
        let state = self.by_key.get(&self.sought(key, leases)).expect("only a known resource changes");
        let ix = match state.get() {
            Either::Second(ix) => ix,
            Either::First(holder) => {
                let key = leases.get(holder).resource.clone();
                let ix = self.full.insert(Full::new(key, Some(holder)));
                let sought = ByKey { key: &self.full.get(ix).key, leases, full: &self.full };
                self.by_key.replace(&sought, State::second(ix));
                ix
            }
        };
        self.lately.set(key, ix, self.full.len());
        ix
    }

    /// Gives a resource its smallest form; it is not here any more if nothing is known of it.
    fn tidy(&mut self, ix: Ix<Full>, leases: &Arena<Lease>) {
        let full = self.full.get(ix);
        if !full.has_no_past() || !full.others.is_empty() {
            return;
        }
        let sought = ByKey { key: &full.key, leases, full: &self.full };
        if let Some(only) = full.first {
            self.by_key.replace(&sought, State::first(only));
        } else {
            self.by_key.remove(&sought);
        }
        self.full.remove(ix);
    }
}

/// A resource that is looked for.
struct ByKey<'a> {
    key: &'a ResourceKey,
    leases: &'a Arena<Lease>,
    full: &'a Arena<Full>,
}

impl Sought<State> for ByKey<'_> {
    type Bound = ResourceKey;

    fn bound_of(&self, state: &State) -> ResourceKey {
        key_of(*state, self.leases, self.full).clone()
    }

    fn order_of_bound(&self, bound: &ResourceKey) -> Ordering {
        bound.cmp(self.key)
    }

    fn order_of(&self, state: &State) -> Ordering {
        key_of(*state, self.leases, self.full).cmp(self.key)
    }
}

fn key_of<'a>(state: State, leases: &'a Arena<Lease>, full: &'a Arena<Full>) -> &'a ResourceKey {
    match state.get() {
        Either::First(ix) => &leases.get(ix).resource,
        Either::Second(ix) => &full.get(ix).key,
    }
}
