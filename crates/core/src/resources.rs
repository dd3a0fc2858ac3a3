//! Every resource that is held, closed by a lock delay, or remembered, in the order of their keys: each tenant's together,
//! by name.
//!
//! An entry of the order holds no name: a resource with one holder has its name in that lease, any other in its own
//! record. So whoever asks gives the leases along, and a lease leaves them only after it has left its resource.

use std::collections::VecDeque;

use leasehold_types::{FencingToken, ResourceKey};

use self::lately::Lately;
use self::order::Order;
use crate::arena::{Arena, Either, EitherIx, Ix};
use crate::lease::{Lease, LeaseIx};
use crate::recent::Recent;
use crate::reply::Ending;
use crate::resource::{Delay, Full, Resource};

mod bounds;
mod key_hash;
mod lately;
mod order;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    by_key: Order,
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

    /// Those with lock delays that are open.
    pub(crate) fn with_delays<'a>(
        &'a self,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> {
        self.wanted_within(None, |_| true, |resource| !resource.delays().is_empty(), leases)
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
        let records = self.records(leases);
        if let Some(state) = self.lately.get(sought.tag)
            && records.key_of(state) == sought.key
        {
            return Some(state);
        }
        let state = self.by_key.get(sought, records)?;
        self.lately.note(sought.tag, state);
        Some(state)
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
            self.insert(&sought, State::first(ix), leases);
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
                self.insert(&sought, State::second(ix), leases);
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
                self.replace(key, state, State::second(ix));
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
        let (key, only) = (full.key.clone(), full.first);
        match only {
            Some(only) => self.replace(&key, State::second(ix), State::first(only)),
            None => {
                self.by_key.remove(&key, State::second(ix));
                self.lately.change(key_hash::tag(&key), State::second(ix), None);
            }
        }
        self.full.remove(ix);
    }

    /// Adds a resource that is not known.
    fn insert(&mut self, sought: &ByKey<'_>, state: State, leases: &Arena<Lease>) {
        self.by_key.insert(sought, state, Records { leases, full: &self.full });
        self.lately.begin(sought.tag, state);
    }

    /// Changes the state of a known resource.
    fn replace(&mut self, key: &ResourceKey, from: State, to: State) {
        self.by_key.replace(key, from, to);
        self.lately.change(key_hash::tag(key), from, Some(to));
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

#[cfg(test)]
mod tests {
    use leasehold_types::{Class, EndReason, ResourceName, TenantName, WallTime};
    use proptest::prelude::*;

    use super::*;
    use crate::command::Sharing;
    use crate::lease::tests::granted;
    use crate::resource::Closes;

    const NAMES: usize = 12;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Hold,
        End,
        Delay,
        EndDelay,
        Forget,
        Look,
    }

    fn any_step() -> impl Strategy<Value = (Step, usize)> {
        let step = prop::sample::select(vec![
            Step::Hold,
            Step::End,
            Step::Delay,
            Step::EndDelay,
            Step::Forget,
            Step::Look,
        ]);
        (step, 0..NAMES)
    }

    fn key(number: usize) -> ResourceKey {
        let name = ResourceName::new(&format!("lock/{number}")).expect("a name");
        ResourceKey::new(&TenantName::default_tenant(), &name)
    }

    proptest! {
        /// There are fewer places for what was found lately than names: they push each other out.
        #[test]
        fn what_was_found_lately_is_what_the_order_has(steps in prop::collection::vec(any_step(), 0..200)) {
            let (mut resources, mut leases) = (Resources::default(), Arena::<Lease>::default());
            let mut held: [Option<LeaseIx>; NAMES] = [None; NAMES];
            let mut delayed = [false; NAMES];
            let granted = granted(1, 0, Sharing::Exclusive, Class::Correctness);
            let token = granted.token;
            for (used, (step, number)) in (1..).zip(steps) {
                let key = key(number);
                let is_known = |resources: &Resources| resources.get(&key, &leases).is_some();
                match (step, held[number]) {
                    (Step::Hold, None) => {
                        let ix = leases.insert(Lease::new(&granted, None));
                        leases.get_mut(ix).resource = key;
                        if let Some(known) = resources.add_holder(ix, &leases) {
                            leases.get_mut(ix).resource = known;
                        }
                        held[number] = Some(ix);
                    }
                    (Step::End, Some(ix)) => {
                        let (owner, reason, at) = (granted.owner.clone(), EndReason::Released, WallTime(0));
                        let ending = Ending { owner, token, reason, max_hold: false, at };
                        resources.end_holder(ix, &leases, ending, used);
                        leases.remove(ix);
                        held[number] = None;
                    }
                    (Step::Delay, _) if !delayed[number] && is_known(&resources) => {
                        resources.add_delay(&key, Delay { token, closes: Closes::All, ms: 1 }, &leases);
                        delayed[number] = true;
                    }
                    (Step::EndDelay, _) if delayed[number] => {
                        resources.remove_delay(&key, token, &leases);
                        delayed[number] = false;
                    }
                    (Step::Forget, _) => resources.forget_oldest(),
                    (Step::Look, _) => drop(is_known(&resources)),
                    _ => {}
                }
                for number in 0..NAMES {
                    let (key, records) = (self::key(number), resources.records(&leases));
                    let sought = ByKey::new(&key);
                    let lately = resources.lately.get(sought.tag);
                    if let Some(lately) = lately.filter(|state| *records.key_of(*state) == key) {
                        prop_assert_eq!(resources.by_key.get(&sought, records), Some(lately), "{}", number);
                    }
                }
            }
        }
    }
}
