//! The order of resources by their keys, as far as anybody needs it.
//!
//! Resources stand in blocks of up to [`FULL`], and between each two blocks is a bound: every key of a block is below the
//! bound after it, and not below the bound before it. Within a block they stand as they came. Names come and go with nearly
//! every call and are listed now and then, so a block is put in order when it is split, and a copy of it for whoever lists it.
//! A new name costs a look at one record of another at most, until its block is full: records are all over the memory.
//!
//! A resource of a block is found by the tags of its entries, a part of a hash of the key. Names that somebody chose to have
//! the same tag cost a look at each other within one block: at most as many as it has.
//!
//! Names that come in order find themselves behind the last of their block, which stays in order so, and leave full blocks
//! behind them. No block is empty.

use leasehold_types::ResourceKey;

use super::bounds::Bounds;
use super::{ByKey, Records, State};

/// Entries of a full block: one more splits it. Small enough that a look at all their tags costs less than finding it.
const FULL: usize = 128;
/// Two neighbours that are no larger together become one.
const ROOMY: usize = FULL * 3 / 4;
/// Blocks grow by so many places: what is left empty at their ends stays small.
const GROWTH: usize = 8;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    blocks: Vec<Block>,
    /// One less than there are blocks.
    bounds: Bounds,
}

#[derive(Clone, Debug, Default)]
struct Block {
    entries: Vec<Entry>,
    /// So many from the first on are in order.
    sorted: usize,
}

/// A resource, with a part of the hash of its key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    state: State,
}

impl Order {
    pub(super) fn get(&self, sought: &ByKey<'_>, records: Records<'_>) -> Option<State> {
        self.blocks.get(self.bounds.not_above(sought.key))?.find(sought, records)
    }

    /// Adds a resource that is not there.
    pub(super) fn insert(&mut self, sought: &ByKey<'_>, state: State, records: Records<'_>) {
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let number = self.bounds.not_above(sought.key);
        let block = &mut self.blocks[number];
        block.push(Entry { tag: sought.tag, state }, sought.key, records);
        if block.entries.len() > FULL {
            let (bound, next) = block.split(records);
            self.bounds.insert(number, bound);
            self.blocks.insert(number + 1, next);
            // Names that come in order from above would leave a few in each block.
            self.join_if_small(number + 1);
        }
    }

    /// Changes the state of a resource that is there.
    pub(super) fn replace(&mut self, key: &ResourceKey, from: State, to: State) {
        let number = self.bounds.not_above(key);
        let block = &mut self.blocks[number];
        let place = block.place_of(from);
        block.entries[place].state = to;
    }

    /// Takes a resource away that is there.
    pub(super) fn remove(&mut self, key: &ResourceKey, state: State) {
        let number = self.bounds.not_above(key);
        let block = &mut self.blocks[number];
        block.remove(block.place_of(state));
        if block.entries.is_empty() {
            self.blocks.remove(number);
            if !self.blocks.is_empty() {
                self.bounds.remove(number.saturating_sub(1));
            }
        } else {
            self.join_if_small(number);
        }
    }

    /// Those that are wanted, in their order: from this key on, as long as keys are within what is asked for, and perhaps some
    /// behind it.
    pub(super) fn iter_within<'a, R, W>(
        &'a self,
        from: Option<&ResourceKey>,
        is_within: R,
        is_wanted: W,
        records: Records<'a>,
    ) -> impl Iterator<Item = State> + use<'a, R, W>
    where
        R: Fn(&ResourceKey) -> bool + 'a,
        W: Fn(State) -> bool + Copy + 'a,
    {
        let number = from.map_or(0, |key| self.bounds.not_above(key));
        let is_after = |state: State| from.is_none_or(|key| records.key_of(state) >= key);
        let mut blocks = self.blocks.get(number..).unwrap_or_default().iter();
        let first =
            blocks.next().map(|block| block.in_order(|state| is_wanted(state) && is_after(state), records));
        let others = self.bounds.from(number).zip(blocks).take_while(move |(bound, _)| is_within(bound));
        let others = others.flat_map(move |(_, block)| block.in_order(is_wanted, records));
        first.into_iter().flatten().chain(others)
    }

    /// Joins a small block with a neighbour if they fit into one with room to spare.
    fn join_if_small(&mut self, number: usize) {
        if self.blocks[number].entries.len() >= FULL / 4 {
            return;
        }
        let fits = |first: &usize| {
            let pair = self.blocks.get(*first).zip(self.blocks.get(first + 1));
            pair.is_some_and(|(one, next)| one.entries.len() + next.entries.len() <= ROOMY)
        };
        let pairs = [Some(number), number.checked_sub(1)];
        let Some(first) = pairs.into_iter().flatten().find(fits) else { return };
        let next = self.blocks.remove(first + 1);
        self.bounds.remove(first);
        self.blocks[first].extend(next);
    }
}

impl Block {
    fn is_sorted(&self) -> bool {
        self.sorted == self.entries.len()
    }

    fn find(&self, sought: &ByKey<'_>, records: Records<'_>) -> Option<State> {
        let mut rest = &self.entries[..];
        while let Some(place) = first_where(rest, |entry| entry.tag == sought.tag) {
            let state = rest[place].state;
            if records.key_of(state) == sought.key {
                return Some(state);
            }
            rest = &rest[place + 1..];
        }
        None
    }

    /// The place of a resource that is here, in this state, which no other one has.
    fn place_of(&self, state: State) -> usize {
        let place = first_where(&self.entries, |entry| entry.state == state);
        place.expect("a known resource is in the block of its key")
    }

    fn push(&mut self, entry: Entry, key: &ResourceKey, records: Records<'_>) {
        if self.is_sorted() && self.entries.last().is_none_or(|last| records.key_of(last.state) < key) {
            self.sorted += 1;
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(GROWTH);
        }
        self.entries.push(entry);
    }

    fn remove(&mut self, place: usize) {
        self.entries.remove(place);
        // One alone is in order.
        self.sorted = (self.sorted - usize::from(place < self.sorted)).max(1);
    }

    /// Cuts this block, which is too full by the one that came last; what comes behind the cut, and the bound between.
    fn split(&mut self, records: Records<'_>) -> (ResourceKey, Self) {
        // Names that come in order leave full blocks behind them.
        let came_last = self.entries[FULL].state;
        if !self.is_sorted() {
            self.entries.sort_unstable_by_key(|entry| records.key_of(entry.state));
        }
        let place = self.place_of(came_last);
        let cut = if place > ROOMY { place } else { FULL / 2 };
        let mut entries = Vec::with_capacity(self.entries.len() - cut + GROWTH);
        entries.extend(self.entries.drain(cut..));
        self.entries.shrink_to_fit();
        self.sorted = cut;
        let next = Self { sorted: entries.len(), entries };
        (records.key_of(next.entries[0].state).clone(), next)
    }

    fn extend(&mut self, next: Self) {
        if self.is_sorted() {
            self.sorted += next.sorted;
        }
        self.entries.reserve_exact(next.entries.len());
        self.entries.extend(next.entries);
    }

    /// Those that are wanted, in their order.
    fn in_order(&self, is_wanted: impl Fn(State) -> bool, records: Records<'_>) -> Vec<State> {
        let mut wanted: Vec<_> =
            self.entries.iter().map(|entry| entry.state).filter(|state| is_wanted(*state)).collect();
        if !self.is_sorted() {
            wanted.sort_unstable_by_key(|state| records.key_of(*state));
        }
        wanted
    }
}

/// Where the first of these entries is. Most are others: that is seen for eight at a time, without a branch for each.
fn first_where(entries: &[Entry], is_it: impl Fn(&Entry) -> bool) -> Option<usize> {
    let (eights, rest) = entries.as_chunks::<8>();
    let any = |eight: &[Entry; 8]| eight.iter().fold(false, |any, entry| any | is_it(entry));
    match eights.iter().position(any) {
        Some(number) => eights[number].iter().position(is_it).map(|place| 8 * number + place),
        None => rest.iter().position(is_it).map(|place| 8 * eights.len() + place),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use leasehold_types::{ResourceName, TenantName};
    use proptest::prelude::*;

    use super::*;
    use crate::arena::{Arena, Ix};
    use crate::resource::Full;

    /// An order and the records of it.
    #[derive(Default)]
    struct Kept {
        order: Order,
        leases: Arena<crate::lease::Lease>,
        full: Arena<Full>,
        /// What is true of it.
        model: BTreeMap<ResourceKey, Ix<Full>>,
        /// All keys have the same tag, as if somebody had chosen them so.
        collides: bool,
    }

    fn key(number: usize) -> ResourceKey {
        key_of("default", &format!("lock/{number:06}"))
    }

    fn key_of(tenant: &str, name: &str) -> ResourceKey {
        ResourceKey::new(
            &TenantName::new(tenant).expect("a tenant"),
            &ResourceName::new(name).expect("a name"),
        )
    }

    impl Kept {
        fn sought<'a>(&self, key: &'a ResourceKey) -> ByKey<'a> {
            let sought = ByKey::new(key);
            if self.collides { ByKey { tag: 7, ..sought } } else { sought }
        }

        fn records(&self) -> Records<'_> {
            Records { leases: &self.leases, full: &self.full }
        }

        fn get(&self, key: &ResourceKey) -> Option<State> {
            self.order.get(&self.sought(key), self.records())
        }

        fn insert(&mut self, key: &ResourceKey) {
            if self.model.contains_key(key) {
                return;
            }
            let ix = self.full.insert(Full::new(key.clone(), None));
            let sought = self.sought(key);
            self.order.insert(&sought, State::second(ix), Records { leases: &self.leases, full: &self.full });
            self.model.insert(key.clone(), ix);
        }

        fn remove(&mut self, key: &ResourceKey) {
            if let Some(ix) = self.model.remove(key) {
                self.order.remove(key, State::second(ix));
                self.full.remove(ix);
            }
        }

        /// Another record of the same key.
        fn replace(&mut self, key: &ResourceKey) {
            if let Some(ix) = self.model.get_mut(key) {
                let next = self.full.insert(Full::new(key.clone(), None));
                self.order.replace(key, State::second(*ix), State::second(next));
                self.full.remove(*ix);
                *ix = next;
            }
        }

        fn assert_is_the_model(&self, from: &ResourceKey) {
            let states = self.model.values().map(|ix| State::second(*ix));
            assert!(self.order.iter_within(None, |_| true, |_| true, self.records()).eq(states));
            let its_key = |state: State| self.records().key_of(state);
            let is_wanted = |state: State| !its_key(state).name().ends_with('3');
            let is_within = |key: &ResourceKey| key.tenant() == from.tenant();
            let listed = self.order.iter_within(Some(from), is_within, is_wanted, self.records());
            let listed: Vec<_> = listed.take_while(|state| is_within(its_key(*state))).collect();
            let expected = self.model.range(from..).take_while(|(key, _)| is_within(key));
            let expected = expected.map(|(_, ix)| State::second(*ix)).filter(|state| is_wanted(*state));
            assert!(listed.into_iter().eq(expected), "from {from:?}");
            for (key, ix) in &self.model {
                assert_eq!(self.get(key), Some(State::second(*ix)), "{key:?}");
            }
            let highest = key_of("zz", "zz");
            assert_eq!(self.order.bounds.not_above(&highest), self.order.blocks.len().saturating_sub(1));
            for block in &self.order.blocks {
                assert!((1..=FULL).contains(&block.entries.len()));
                let keys: Vec<_> =
                    block.entries.iter().map(|entry| self.records().key_of(entry.state)).collect();
                assert!(keys[..block.sorted].is_sorted());
            }
        }
    }

    /// Few enough to be met again, in two tenants, some of them alike for long.
    fn any_key() -> impl Strategy<Value = ResourceKey> {
        let tenant = prop_oneof![9 => Just("default"), 1 => Just("other")];
        let place =
            prop_oneof![Just(""), Just("a/"), Just("a-name-that-is-alike-for-longer-than-a-head-is/")];
        (tenant, place, 0..300u16)
            .prop_map(|(tenant, place, number)| key_of(tenant, &format!("{place}{number}")))
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(
            steps in prop::collection::vec((any_key(), 0u8..8), 0..1_500),
            from in any_key(),
            collides: bool,
        ) {
            let mut kept = Kept { collides, ..Kept::default() };
            for (key, what) in steps {
                match what {
                    0 | 1 => kept.remove(&key),
                    2 => kept.replace(&key),
                    _ => kept.insert(&key),
                }
                prop_assert_eq!(kept.get(&key), kept.model.get(&key).map(|ix| State::second(*ix)));
            }
            kept.assert_is_the_model(&from);
        }
    }

    #[test]
    fn names_in_order_fill_their_blocks() {
        let mut kept = Kept::default();
        (0..10_000).for_each(|number| kept.insert(&key(number)));
        assert!(kept.order.blocks.len() <= 10_000 / FULL + 1, "{} blocks", kept.order.blocks.len());
        kept.assert_is_the_model(&key(5_000));
    }

    /// Above some that are lower, so that they are not the first of their block.
    #[test]
    fn names_in_order_from_above_leave_no_small_blocks() {
        let mut kept = Kept::default();
        (0..127).chain((127..5_000).rev()).for_each(|number| kept.insert(&key(number)));
        assert!(kept.order.blocks.len() <= 5_000 / (FULL / 2), "{} blocks", kept.order.blocks.len());
        kept.assert_is_the_model(&key(2_500));
    }

    /// Who lists one tenant's does not go through everybody's.
    #[test]
    fn a_list_ends_with_what_it_is_within() {
        let mut kept = Kept::default();
        (0..5_000).for_each(|number| kept.insert(&key(number)));
        let looked_at = std::cell::Cell::new(0);
        let is_wanted = |_| {
            looked_at.set(looked_at.get() + 1);
            false
        };
        let is_within = |key: &ResourceKey| key.name().starts_with("lock/00200");
        let from = key_of("default", "lock/00200");
        assert_eq!(kept.order.iter_within(Some(&from), is_within, is_wanted, kept.records()).next(), None);
        assert!((10..=2 * FULL).contains(&looked_at.get()), "{} of 5,000", looked_at.get());
    }

    #[test]
    fn what_is_emptied_does_not_stay() {
        let mut kept = Kept::default();
        // In no order: 7,919 is a prime.
        (0..2_000).for_each(|number| kept.insert(&key(number * 7_919 % 2_000)));
        (0..2_000).filter(|number| number % 16 != 0).for_each(|number| kept.remove(&key(number)));
        assert!(kept.order.blocks.len() <= 4, "{} blocks for {}", kept.order.blocks.len(), kept.model.len());
        kept.assert_is_the_model(&key(1_000));
        (0..2_000).step_by(16).for_each(|number| kept.remove(&key(number)));
        assert!(kept.order.blocks.is_empty());
        kept.insert(&key(1));
        kept.assert_is_the_model(&key(0));
    }
}
