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

mod key_hash;
mod lately;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    by_key: Blocks<Entry, ResourceKey>,
    lately: Lately,
    full: Arena<Full>,
    /// Those with endings, by when they were last used: the oldest is forgotten first.
    recent: Recent,
}

/// Almost all resources are held by one and have no past, so that costs no more than the place of the lease.
type State = EitherIx<Lease, Full>;

/// A resource in its order, with a hash of its key: whoever looks for one that is there finds it among the entries of a
/// block without a look at the records of the others.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    state: State,
}

impl Resources {
    /// What is known of a resource, if anything is.
    pub(crate) fn get(&self, key: &ResourceKey, leases: &Arena<Lease>) -> Option<Resource<'_>> {
        let sought = self.sought(key, leases);
        let state = match self.lately.get(key, sought.hash, &self.full) {
            Some(ix) => Some(State::second(ix)),
            None => self.by_key.get(&sought).map(|entry| entry.state),
        };
        state.map(|state| self.look_at(state))
    }

    /// All of them.
    pub(crate) fn iter<'a>(
        &'a self,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> {
        self.by_key.iter().map(|entry| self.tell(entry, leases))
    }

    /// Those from this key on.
    pub(crate) fn range_from<'a>(
        &'a self,
        begin: &ResourceKey,
        leases: &'a Arena<Lease>,
    ) -> impl Iterator<Item = (&'a ResourceKey, Resource<'a>)> + use<'a> {
        self.by_key.iter_from(&self.sought(begin, leases)).map(|entry| self.tell(entry, leases))
    }

    /// Those with endings and when they were last used, oldest first.
    pub(crate) fn recent(&self) -> impl Iterator<Item = (u64, &ResourceKey)> {
        self.recent.iter(&self.full).map(|full| (full.used, &full.key))
    }

    /// How many have endings.
    pub(crate) fn recent_len(&self) -> usize {
        self.recent.len()
    }

    fn tell<'a>(&'a self, entry: Entry, leases: &'a Arena<Lease>) -> (&'a ResourceKey, Resource<'a>) {
        (key_of(entry.state, leases, &self.full), self.look_at(entry.state))
    }

    fn look_at(&self, state: State) -> Resource<'_> {
        match state.get() {
            Either::First(ix) => Resource::HeldBy(ix),
            Either::Second(full) => Resource::Full(self.full.get(full)),
        }
    }

    fn sought<'a>(&'a self, key: &'a ResourceKey, leases: &'a Arena<Lease>) -> ByKey<'a> {
        ByKey::new(key, leases, &self.full)
    }

    /// This lease holds its resource now, with the newest token. If the resource was known, the lease's name is to be
    /// this one: one allocation serves all.
    pub(crate) fn add_holder(&mut self, ix: LeaseIx, leases: &Arena<Lease>) -> Option<ResourceKey> {
        let key = &leases.get(ix).resource;
        let sought = ByKey::new(key, leases, &self.full);
        let full_ix = match self.lately.get(key, sought.hash, &self.full) {
            Some(full_ix) => full_ix,
            None => {
                if self.by_key.insert(&sought, sought.entry(State::first(ix))) {
                    return None;
                }
                self.full_ix(key, leases)
            }
        };
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
            let sought = ByKey::new(key, leases, &self.full);
            self.by_key.insert(&sought, sought.entry(State::second(ix)));
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
        let sought = self.sought(key, leases);
        let hash = sought.hash;
        if let Some(ix) = self.lately.get(key, hash, &self.full) {
            return ix;
        }
        let entry = self.by_key.get(&sought).expect("only a known resource changes");
        let ix = match entry.state.get() {
            Either::Second(ix) => ix,
            Either::First(holder) => {
                let full = Full::new(leases.get(holder).resource.clone(), Some(holder));
                let ix = self.full.insert(full);
                let sought = ByKey { key, hash, leases, full: &self.full };
                self.by_key.replace(&sought, sought.entry(State::second(ix)));
                ix
            }
        };
        self.lately.set(hash, ix, self.full.len());
        ix
    }

    /// Gives a resource its smallest form; it is not here any more if nothing is known of it.
    fn tidy(&mut self, ix: Ix<Full>, leases: &Arena<Lease>) {
        let full = self.full.get(ix);
        if !full.has_no_past() || !full.others.is_empty() {
            return;
        }
        let sought = ByKey::new(&full.key, leases, &self.full);
        if let Some(only) = full.first {
            self.by_key.replace(&sought, sought.entry(State::first(only)));
        } else {
            self.by_key.remove(&sought);
        }
        self.full.remove(ix);
    }
}

/// A resource that is looked for.
struct ByKey<'a> {
    key: &'a ResourceKey,
    hash: u64,
    leases: &'a Arena<Lease>,
    full: &'a Arena<Full>,
}

impl<'a> ByKey<'a> {
    fn new(key: &'a ResourceKey, leases: &'a Arena<Lease>, full: &'a Arena<Full>) -> Self {
        Self { key, hash: key_hash::of(key), leases, full }
    }

    fn tag(&self) -> u32 {
        key_hash::tag(self.hash)
    }

    /// Its entry, in this state.
    fn entry(&self, state: State) -> Entry {
        Entry { tag: self.tag(), state }
    }
}

impl Sought<Entry> for ByKey<'_> {
    type Bound = ResourceKey;

    fn bound_of(&self, entry: &Entry) -> ResourceKey {
        key_of(entry.state, self.leases, self.full).clone()
    }

    fn order_of_bound(&self, bound: &ResourceKey) -> Ordering {
        bound.cmp(self.key)
    }

    fn order_of(&self, entry: &Entry) -> Ordering {
        key_of(entry.state, self.leases, self.full).cmp(self.key)
    }

    /// By tags first: one that is there is found with a look at one record, one that is not by seven, where it would be. The
    /// first with this tag decides, whatever it is, so that keys that are chosen to collide cost one look more.
    fn place_in(&self, entries: &[Entry]) -> Result<usize, usize> {
        let tagged = first_with(self.tag(), entries);
        match tagged.filter(|place| self.order_of(&entries[*place]).is_eq()) {
            Some(place) => Ok(place),
            None => entries.binary_search_by(|entry| self.order_of(entry)),
        }
    }
}

/// Where the first entry with this tag is. Most have it not: that is seen for eight at a time, without a branch for each.
fn first_with(tag: u32, entries: &[Entry]) -> Option<usize> {
    let is_it = |entry: &Entry| entry.tag == tag;
    let (eights, rest) = entries.as_chunks::<8>();
    let any = |eight: &[Entry; 8]| eight.iter().fold(false, |any, entry| any | is_it(entry));
    match eights.iter().position(any) {
        Some(at) => eights[at].iter().position(is_it).map(|place| 8 * at + place),
        None => rest.iter().position(is_it).map(|place| 8 * eights.len() + place),
    }
}

fn key_of<'a>(state: State, leases: &'a Arena<Lease>, full: &'a Arena<Full>) -> &'a ResourceKey {
    match state.get() {
        Either::First(ix) => &leases.get(ix).resource,
        Either::Second(ix) => &full.get(ix).key,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::{ResourceName, TenantName};

    use super::*;

    pub(super) fn key(number: usize) -> ResourceKey {
        let name = ResourceName::new(&format!("lock/{number}")).expect("a name");
        ResourceKey::new(&TenantName::default_tenant(), &name)
    }

    /// As if somebody had chosen names whose hashes collide.
    #[test]
    fn keys_with_the_same_tag_are_told_apart() {
        let (leases, mut full, mut by_key) = (Arena::default(), Arena::default(), Blocks::default());
        let keys: Vec<_> = (0..=1_000).map(key).collect();
        let (new, known) = keys.split_last().expect("there are some");
        let all: Vec<_> = known.iter().map(|key| full.insert(Full::new(key.clone(), None))).collect();
        let sought = |key| ByKey { hash: 7, ..ByKey::new(key, &leases, &full) };
        for (key, ix) in known.iter().zip(all) {
            let sought = sought(key);
            assert!(by_key.insert(&sought, sought.entry(State::second(ix))));
        }
        let key_of = |entry: Option<Entry>| entry.map(|entry| key_of(entry.state, &leases, &full));
        assert_eq!(key_of(by_key.get(&sought(new))), None);
        for key in known {
            assert_eq!(key_of(by_key.get(&sought(key))), Some(key));
        }
        for key in known.iter().step_by(3) {
            assert_eq!(key_of(by_key.remove(&sought(key))), Some(key));
        }
        for (number, key) in known.iter().enumerate() {
            assert_eq!(key_of(by_key.get(&sought(key))), (number % 3 != 0).then_some(key));
        }
    }
}
