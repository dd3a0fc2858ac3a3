//! A set of small keys, sorted, in blocks: sorted arrays of up to [`FULL`] keys.
//!
//! It takes about half the memory of a B-tree, and blocks whose keys come in order stay full. No block is empty, and every key
//! of a block is below those of the next.

/// Keys of a full block: one more splits it. Small enough that shifting half of it costs less than finding it.
const FULL: usize = 128;
/// Two neighbours that are no larger together become one.
const ROOMY: usize = FULL * 3 / 4;
/// Blocks grow by so many places: what is left empty at their ends stays small.
const GROWTH: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<K> {
    blocks: Vec<Vec<K>>,
    len: usize,
}

/// Block and place in it.
type Place = (usize, usize);

impl<K> Default for Blocks<K> {
    fn default() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Copy> Blocks<K> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.find(&key).is_ok()
    }

    /// False if it is there already.
    pub(crate) fn insert(&mut self, key: K) -> bool {
        let Err((block, place)) = self.find(&key) else { return false };
        if self.blocks.is_empty() {
            // A session's few leases are one block, and there are many sessions.
            self.blocks.reserve_exact(1);
            self.blocks.push(Vec::new());
        }
        let keys = &mut self.blocks[block];
        if keys.len() == keys.capacity() {
            keys.reserve_exact(GROWTH);
        }
        keys.insert(place, key);
        self.len += 1;
        if keys.len() > FULL {
            self.split(block, place);
        }
        true
    }

    /// False if it is not there.
    pub(crate) fn remove(&mut self, key: K) -> bool {
        let Ok((block, place)) = self.find(&key) else { return false };
        self.blocks[block].remove(place);
        self.len -= 1;
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
        } else {
            self.join_if_small(block);
        }
        true
    }

    /// All of them in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = K> {
        self.blocks.iter().flatten().copied()
    }

    /// Where it is, or where it would be.
    fn find(&self, key: &K) -> Result<Place, Place> {
        let is_not_above = |keys: &Vec<K>| keys.first().is_some_and(|first| first <= key);
        let block = self.blocks.partition_point(is_not_above).saturating_sub(1);
        let Some(keys) = self.blocks.get(block) else { return Err((0, 0)) };
        match keys.binary_search(key) {
            Ok(place) => Ok((block, place)),
            Err(place) => Err((block, place)),
        }
    }

    /// Splits a block that is too full by what came to this place.
    fn split(&mut self, block: usize, place: usize) {
        // Keys that come in order leave full blocks behind them.
        let cut = if place > ROOMY { place } else { FULL / 2 };
        let keys = &mut self.blocks[block];
        let mut next = Vec::with_capacity(keys.len() - cut + GROWTH);
        next.extend(keys.drain(cut..));
        keys.shrink_to_fit();
        self.blocks.insert(block + 1, next);
        // Keys that come in order from above would leave a few in each block.
        self.join_if_small(block + 1);
    }

    /// Joins a small block with a neighbour if they fit into one with room to spare.
    fn join_if_small(&mut self, block: usize) {
        if self.blocks[block].len() >= FULL / 4 {
            return;
        }
        let fits = |first: &usize| {
            let pair = self.blocks.get(*first).zip(self.blocks.get(first + 1));
            pair.is_some_and(|(one, next)| one.len() + next.len() <= ROOMY)
        };
        let pairs = [Some(block), block.checked_sub(1)];
        let Some(first) = pairs.into_iter().flatten().find(fits) else { return };
        let next = self.blocks.remove(first + 1);
        let keys = &mut self.blocks[first];
        keys.reserve_exact(next.len());
        keys.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_set(steps in prop::collection::vec((0u16..900, 0u8..4), 0..2_000)) {
            let (mut blocks, mut model) = (Blocks::default(), BTreeSet::new());
            for (key, what) in steps {
                match what {
                    0 => prop_assert_eq!(blocks.remove(key), model.remove(&key)),
                    _ => prop_assert_eq!(blocks.insert(key), model.insert(key)),
                }
                prop_assert_eq!(blocks.contains(key), model.contains(&key));
            }
            prop_assert!(blocks.iter().eq(model.iter().copied()));
            prop_assert_eq!(blocks.len(), model.len());
            prop_assert!(blocks.blocks.iter().all(|keys| (1..=FULL).contains(&keys.len())));
        }
    }

    #[test]
    fn keys_in_order_fill_their_blocks() {
        let mut blocks = Blocks::default();
        for key in 0..10_000u32 {
            assert!(blocks.insert(key) && !blocks.insert(key));
        }
        assert!(blocks.blocks.len() <= 10_000 / FULL + 1, "{} blocks", blocks.blocks.len());
    }

    /// Above some that are lower, so that they are not the first of their block.
    #[test]
    fn keys_in_order_from_above_leave_no_small_blocks() {
        let mut blocks = Blocks::default();
        assert!((0..127).chain((127..5_000).rev()).all(|key| blocks.insert(key)));
        assert!(blocks.blocks.len() <= 5_000 / (FULL / 2), "{} blocks", blocks.blocks.len());
    }

    #[test]
    fn what_is_emptied_does_not_stay() {
        let mut blocks = Blocks::default();
        assert!((0..2_000).all(|key| blocks.insert(key)));
        assert!((0..2_000).filter(|key| key % 16 != 0).all(|key| blocks.remove(key)));
        assert!(blocks.blocks.len() <= 4, "{} blocks for {} keys", blocks.blocks.len(), blocks.len());
        assert!((0..2_000).step_by(16).all(|key| blocks.remove(key)));
        assert!(blocks.blocks.is_empty());
    }
}
