//! Every resource that is held, closed by a lock delay, or remembered, in the order of their keys: each tenant's together,
//! by name.
//!
//! An entry of the order holds no name: a resource with one holder has its name in that lease, any other in its own
//! record. So whoever asks gives the leases along, and a lease leaves them only after it has left its resource.

use std::collections::VecDeque;

use leasehold_types::{FencingToken, ResourceKey};

use self::order::Order;
use crate::arena::{Arena, Either, EitherIx, Ix};
use crate::lease::{Lease, LeaseIx};
use crate::recent::Recent;
use crate::reply::Ending;
use crate::resource::{Delay, Full, Resource};

mod bounds;
mod key_hash;
mod order;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    by_key: Order,
    full: Arena<Full>,
    /// Those with endings, by when they were last used: the oldest is forgotten first.
    recent: Recent,
}

/// Almost all resources are held by one and have no past, so that costs no more than the place of the lease.
type State = EitherIx<Lease, Full>;

impl Resources {
    /// What is known of a resource, if anything is.
    pub(crate) fn get(&self, key: &ResourceKey, leases: &Arena<Lease>) -> Option<Resource<'_>> {
        self.find(&ByKey::new(key), leases).map(|state| self.look_at(state))
    }

    /// All of them.
    pub(crate) fn iter<'a>(
        &'a self,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> {
        self.wanted_within(None, |_| true, |_| true, leases)
    }

    /// Those of which is known what was before.
    pub(crate) fn with_past<'a>(
        &'a self,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> {
        self.wanted_within(None, |_| true, Resource::has_past, leases)
    }

    /// Those that are held, from this key on, as long as keys are within what is asked for.
    pub(crate) fn held_within<'a, R: Fn(&ResourceKey) -> bool + Copy + 'a>(
        &'a self,
        from: &ResourceKey,
        is_within: R,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> + use<'a, R> {
        self.wanted_within(Some(from), is_within, Resource::is_held, leases)
    }

    fn wanted_within<'a, R: Fn(&ResourceKey) -> bool + Copy + 'a>(
        &'a self,
        from: Option<&ResourceKey>,
        is_within: R,
        is_wanted: fn(Resource<'a>) -> bool,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> + use<'a, R> {
        let records = self.records(leases);
        let is_wanted = move |state| is_wanted(self.look_at(state));
        let states = self.by_key.iter_within(from, is_within, is_wanted, records);
        let keyed = states.map(move |state| (records.key_of(state), self.look_at(state)));
        keyed.take_while(move |(key, _)| is_within(key))
    }

    /// Those with endings and when they were last used, oldest first.
    pub(crate) fn recent(&self) -> impl Iterator<Item = (u64, &ResourceKey)> {
        self.recent.iter(&self.full).map(|full| (full.used, &full.key))
    }

    /// How many have endings.
    pub(crate) fn recent_len(&self) -> usize {
        self.recent.len()
    }

    fn find(&self, sought: &ByKey<'_>, leases: &Arena<Lease>) -> Option<State> {
        self.by_key.get(sought, self.records(leases))
    }

    fn look_at(&self, state: State) -> Resource<'_> {
        match state.get() {
            Either::First(ix) => Resource::HeldBy(ix),
            Either::Second(full) => Resource::Full(self.full.get(full)),
        }
    }

    fn records<'a>(&'a self, leases: &'a Arena<Lease>) -> Records<'a> {
        Records { leases, full: &self.full }
    }

    /// This lease holds its resource now, with the newest token. If the resource was known, the lease's name is to be
    /// this one: one allocation serves all.
    pub(crate) fn add_holder(&mut self, ix: LeaseIx, leases: &Arena<Lease>) -> Option<ResourceKey> {
        let sought = ByKey::new(&leases.get(ix).resource);
        let Some(state) = self.find(&sought, leases) else {
            self.by_key.insert(&sought, State::first(ix), Records { leases, full: &self.full });
            return None;
        };
        let full_ix = self.in_full(state, leases);
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
    pub(crate) fn forget_oldest(&mut self) {
        let Some(ix) = self.recent.pop_oldest(&mut self.full) else { return };
        let full = self.full.get_mut(ix);
        (full.endings, full.used) = (VecDeque::new(), 0);
        self.tidy(ix);
    }

    pub(crate) fn add_delay(&mut self, key: &ResourceKey, delay: Delay, leases: &Arena<Lease>) {
        let ix = self.full_ix(key, leases);
        self.full.get_mut(ix).delays.push(delay);
    }

    pub(crate) fn remove_delay(&mut self, key: &ResourceKey, token: FencingToken, leases: &Arena<Lease>) {
        let ix = self.full_ix(key, leases);
        self.full.get_mut(ix).delays.retain(|delay| delay.token != token);
        self.tidy(ix);
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
        let sought = ByKey::new(key);
        let ix = match self.find(&sought, leases) {
            Some(state) => self.in_full(state, leases),
            None => {
                let ix = self.full.insert(Full::new(key.clone(), None));
                self.by_key.insert(&sought, State::second(ix), Records { leases, full: &self.full });
                ix
            }
        };
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
        let state = self.find(&ByKey::new(key), leases).expect("only a known resource changes");
        self.in_full(state, leases)
    }

    /// The full form of the resource that is in this state.
    fn in_full(&mut self, state: State, leases: &Arena<Lease>) -> Ix<Full> {
        match state.get() {
            Either::Second(ix) => ix,
            Either::First(holder) => {
                let key = &leases.get(holder).resource;
                let ix = self.full.insert(Full::new(key.clone(), Some(holder)));
                self.by_key.replace(key, state, State::second(ix));
                ix
            }
        }
    }

    /// Gives a resource its smallest form; it is not here any more if nothing is known of it.
    fn tidy(&mut self, ix: Ix<Full>) {
        let full = self.full.get(ix);
        if full.has_past() || full.used > 0 || !full.others.is_empty() {
            return;
        }
        match full.first {
            Some(only) => self.by_key.replace(&full.key, State::second(ix), State::first(only)),
            None => self.by_key.remove(&full.key, State::second(ix)),
        }
        self.full.remove(ix);
    }
}

/// A resource that is looked for.
struct ByKey<'a> {
    key: &'a ResourceKey,
    tag: u32,
}

impl<'a> ByKey<'a> {
    fn new(key: &'a ResourceKey) -> Self {
        Self { key, tag: key_hash::tag(key) }
    }
}

/// Where the keys are.
#[derive(Clone, Copy)]
struct Records<'a> {
    leases: &'a Arena<Lease>,
    full: &'a Arena<Full>,
}

impl<'a> Records<'a> {
    fn key_of(self, state: State) -> &'a ResourceKey {
        match state.get() {
            Either::First(ix) => &self.leases.get(ix).resource,
            Either::Second(ix) => &self.full.get(ix).key,
        }
    }
}
