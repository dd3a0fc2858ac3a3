//! A sorted array in blocks: sorted arrays of up to [`FULL`] entries, and between each two of them a bound.
//!
//! Entries are small and need not hold what they are sorted by: whoever looks for one says how it stands to an entry
//! ([`Sought`]), perhaps by looking at the record that the entry points at. A bound holds its whole key, so that the
//! block is found among bounds that stand side by side, and only then is anything else touched.
//!
//! It takes about a third of the memory of a B-tree of keys, and blocks whose keys come in order stay full. Nothing
//! here depends on a hash: callers choose many of the keys, and an order cannot be flooded.
//!
//! No block is empty. Every key of a block is below the bound after it, and not below the bound before it.

use std::cmp::Ordering;
use std::iter::{Copied, Flatten, Skip};
use std::slice;

/// Entries of a full block: one more splits it. Small enough that shifting half of it costs less than finding it.
const FULL: usize = 128;
/// Two neighbours that are no larger together become one.
const ROOMY: usize = FULL * 3 / 4;
/// Blocks grow by so many places: what is left empty at their ends stays small.
const GROWTH: usize = 8;

/// What is looked for among entries. All orders that are used with the same blocks must agree.
pub(crate) trait Sought<E> {
    /// The whole key of an entry.
    type Bound;

    /// The key of this entry.
    fn bound_of(&self, entry: &E) -> Self::Bound;

    /// How a bound stands to what is looked for.
    fn order_of_bound(&self, bound: &Self::Bound) -> Ordering;

    /// How an entry stands to what is looked for.
    fn order_of(&self, entry: &E) -> Ordering;
}

/// Entries that are their own keys.
impl<E: Ord + Copy> Sought<E> for E {
    type Bound = E;

    fn bound_of(&self, entry: &E) -> E {
        *entry
    }

    fn order_of_bound(&self, bound: &E) -> Ordering {
        bound.cmp(self)
    }

    fn order_of(&self, entry: &E) -> Ordering {
        entry.cmp(self)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<E, B> {
    blocks: Vec<Vec<E>>,
    /// One less than there are blocks.
    bounds: Vec<B>,
    len: usize,
}

/// Entries from some place on.
pub(crate) type EntriesFrom<'a, E> = Copied<Skip<Flatten<slice::Iter<'a, Vec<E>>>>>;

/// Block and place in it.
type Place = (usize, usize);

impl<E, B> Default for Blocks<E, B> {
    fn default() -> Self {
        Self { blocks: Vec::new(), bounds: Vec::new(), len: 0 }
    }
}

impl<E: Copy, B> Blocks<E, B> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, sought: &impl Sought<E, Bound = B>) -> Option<E> {
        let (block, place) = self.find(sought).ok()?;
        Some(self.blocks[block][place])
    }

    /// Puts an entry where it belongs, in the place of another of its key if there is one.
    pub(crate) fn set(&mut self, sought: &impl Sought<E, Bound = B>, entry: E) {
        match self.find(sought) {
            Ok((block, place)) => self.blocks[block][place] = entry,
            Err((block, place)) => self.insert_at(block, place, entry, sought),
        }
    }

    /// Puts another entry of the same key in its place, and gives the former. Does nothing if there is none.
    pub(crate) fn replace(&mut self, sought: &impl Sought<E, Bound = B>, entry: E) -> Option<E> {
        let (block, place) = self.find(sought).ok()?;
        Some(std::mem::replace(&mut self.blocks[block][place], entry))
    }

    /// Puts an entry where it belongs. False if there is one of its key already.
    pub(crate) fn insert(&mut self, sought: &impl Sought<E, Bound = B>, entry: E) -> bool {
        let Err((block, place)) = self.find(sought) else { return false };
        self.insert_at(block, place, entry, sought);
        true
    }

    pub(crate) fn remove(&mut self, sought: &impl Sought<E, Bound = B>) -> Option<E> {
        let (block, place) = self.find(sought).ok()?;
        let entry = self.blocks[block].remove(place);
        self.len -= 1;
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
            if !self.bounds.is_empty() {
                self.bounds.remove(block.saturating_sub(1));
            }
        } else if self.blocks[block].len() < FULL / 4 {
            self.join(block);
        }
        Some(entry)
    }

    /// All entries in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = E> {
        self.blocks.iter().flatten().copied()
    }

    /// The entries that are not before what is looked for, in their order.
    pub(crate) fn iter_from(&self, sought: &impl Sought<E, Bound = B>) -> EntriesFrom<'_, E> {
        let (block, place) = self.find(sought).unwrap_or_else(|would_be| would_be);
        self.blocks[block.min(self.blocks.len())..].iter().flatten().skip(place).copied()
    }

    /// Where it is, or where it would be.
    fn find(&self, sought: &impl Sought<E, Bound = B>) -> Result<Place, Place> {
        let block = self.bounds.partition_point(|bound| sought.order_of_bound(bound).is_le());
        let Some(entries) = self.blocks.get(block) else { return Err((0, 0)) };
        match entries.binary_search_by(|entry| sought.order_of(entry)) {
            Ok(place) => Ok((block, place)),
            Err(place) => Err((block, place)),
        }
    }

    fn insert_at(&mut self, block: usize, place: usize, entry: E, sought: &impl Sought<E, Bound = B>) {
        self.len += 1;
        if self.blocks.is_empty() {
            // A session's few leases are one block, and there are many sessions.
            self.blocks.reserve_exact(1);
            self.blocks.push(Vec::new());
        }
        let (block, place) = match self.blocks[block].len() >= FULL {
            true => self.split(block, place, &entry, sought),
            false => (block, place),
        };
        let entries = &mut self.blocks[block];
        if entries.len() == entries.capacity() {
            entries.reserve_exact(GROWTH);
        }
        entries.insert(place, entry);
    }

    /// Splits a full block that gets an entry at this place; where that place is then.
    fn split(&mut self, block: usize, place: usize, entry: &E, sought: &impl Sought<E, Bound = B>) -> Place {
        // Keys that come in order leave full blocks behind them.
        let cut = if place > ROOMY { place } else { FULL / 2 };
        let first = if place == cut { entry } else { &self.blocks[block][cut] };
        self.bounds.insert(block, sought.bound_of(first));
        let mut next = Vec::with_capacity(FULL - cut + GROWTH);
        next.extend(self.blocks[block].drain(cut..));
        self.blocks[block].shrink_to_fit();
        self.blocks.insert(block + 1, next);
        if place >= cut { (block + 1, place - cut) } else { (block, place) }
    }

    /// Joins a small block with a neighbour if they fit into one with room to spare.
    fn join(&mut self, block: usize) {
        let fits = |first: usize| {
            let pair = self.blocks.get(first).zip(self.blocks.get(first + 1));
            pair.is_some_and(|(one, next)| one.len() + next.len() <= ROOMY)
        };
        let Some(first) =
            [Some(block), block.checked_sub(1)].into_iter().flatten().find(|first| fits(*first))
        else {
            return;
        };
        let next = self.blocks.remove(first + 1);
        self.bounds.remove(first);
        let entries = &mut self.blocks[first];
        entries.reserve_exact(next.len());
        entries.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn assert_same(blocks: &Blocks<u16, u16>, model: &BTreeSet<u16>) {
        assert_eq!(blocks.len(), model.len());
        assert!(blocks.iter().eq(model.iter().copied()));
        assert!(blocks.blocks.iter().all(|block| !block.is_empty() && block.len() <= FULL));
        assert_eq!(blocks.bounds.len(), blocks.blocks.len().saturating_sub(1));
        for (bound, pair) in blocks.bounds.iter().zip(blocks.blocks.windows(2)) {
            assert!(pair[0].last() < Some(bound) && Some(bound) <= pair[1].first());
        }
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_set(steps in prop::collection::vec((0u16..900, 0u8..4), 0..2_000), from: u16) {
            let (mut blocks, mut model) = (Blocks::default(), BTreeSet::new());
            for (key, what) in steps {
                match what {
                    0 => assert_eq!(blocks.remove(&key).is_some(), model.remove(&key)),
                    // Looked for first, as the table does.
                    1 => assert_eq!(blocks.get(&key).is_none() && blocks.insert(&key, key), model.insert(key)),
                    2 => {
                        blocks.set(&key, key);
                        model.insert(key);
                    }
                    _ => assert_eq!(blocks.insert(&key, key), model.insert(key)),
                }
                assert_eq!(blocks.get(&key).is_some(), model.contains(&key));
            }
            assert_same(&blocks, &model);
            let from = from % 920;
            assert!(blocks.iter_from(&from).eq(model.range(from..).copied()));
        }
    }

    #[test]
    fn keys_in_order_fill_their_blocks() {
        let mut blocks = Blocks::default();
        for key in 0..10_000u32 {
            assert!(blocks.insert(&key, key) && !blocks.insert(&key, key));
        }
        assert!(blocks.blocks.len() <= 10_000 / FULL + 1, "{} blocks", blocks.blocks.len());
        assert_eq!((blocks.replace(&77, 77), blocks.replace(&10_000, 10_000)), (Some(77), None));
    }

    #[test]
    fn what_is_emptied_does_not_stay() {
        let mut blocks = Blocks::default();
        for key in 0..2_000 {
            assert!(blocks.insert(&key, key));
        }
        for key in (0..2_000).filter(|key| key % 16 != 0) {
            assert_eq!(blocks.remove(&key), Some(key));
        }
        assert!(blocks.blocks.len() <= 4, "{} blocks for {} keys", blocks.blocks.len(), blocks.len());
        for key in (0..2_000).step_by(16) {
            assert_eq!(blocks.remove(&key), Some(key));
        }
        assert!(blocks.blocks.is_empty() && blocks.bounds.is_empty());
    }
}
