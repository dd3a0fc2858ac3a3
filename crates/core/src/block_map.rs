//! A sorted map in blocks: sorted arrays of up to [`FULL`] entries in one sorted array of blocks.
//!
//! It takes about half the memory of a B-tree whose entries come in order, as names often do: a B-tree leaves its nodes
//! half empty then, and pays for pointers between them. A million held locks stand in three of these, so that is what
//! counts; looking up takes a few comparisons more or less.
//!
//! No block is empty, and every key of a block is smaller than every key of the next. Where an entry does not hold its
//! whole key, the caller says how entries stand to the one that is looked for (`_by`), and keeps to one order.

use std::cmp::Ordering;

/// Entries of a full block: one more splits it. Small enough that shifting half of it costs less than finding it.
const FULL: usize = 64;
/// Blocks grow by so many places: what is left empty at their ends stays small.
const GROWTH: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct BlockMap<K, V> {
    blocks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for BlockMap<K, V> {
    fn default() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }
}

impl<K: Ord, V> BlockMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (block, place) = self.find(key).ok()?;
        Some(&self.blocks[block][place].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (block, place) = self.find(key).ok()?;
        Some(&mut self.blocks[block][place].1)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Puts a value under a key; returns the one that it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((block, place)) => Some(std::mem::replace(&mut self.blocks[block][place].1, value)),
            Err((block, place)) => {
                self.insert_at(block, place, (key, value));
                None
            }
        }
    }

    /// Whether the key is new, the key as it stands here, and its value, which is made if it was not here.
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> (bool, &K, &mut V) {
        let (is_new, (block, place)) = match self.find(&key) {
            Ok(found) => (false, found),
            Err((block, place)) => (true, self.insert_at(block, place, (key, make()))),
        };
        let (key, value) = &mut self.blocks[block][place];
        (is_new, key, value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_by(|other, _| other.cmp(key))
    }

    /// All entries by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.blocks.iter().flatten().map(|(key, value)| (key, value))
    }

    /// The entries from this key on, by key.
    pub(crate) fn range_from<'a>(
        &'a self,
        begin: &K,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (block, place) = self.find(begin).unwrap_or_else(|would_be| would_be);
        self.blocks[block.min(self.blocks.len())..]
            .iter()
            .flatten()
            .skip(place)
            .map(|(key, value)| (key, value))
    }

    /// Where a key is, or where it would be.
    fn find(&self, key: &K) -> Result<(usize, usize), (usize, usize)> {
        self.find_by(|other, _| other.cmp(key))
    }
}

impl<K, V> BlockMap<K, V> {
    pub(crate) fn get_by(&self, order: impl Fn(&K, &V) -> Ordering) -> Option<&V> {
        let (block, place) = self.find_by(order).ok()?;
        Some(&self.blocks[block][place].1)
    }

    /// Puts an entry where it belongs; false if there is one in its place already.
    pub(crate) fn insert_by(&mut self, order: impl Fn(&K, &V) -> Ordering, key: K, value: V) -> bool {
        let Err((block, place)) = self.find_by(order) else { return false };
        self.insert_at(block, place, (key, value));
        true
    }

    pub(crate) fn remove_by(&mut self, order: impl Fn(&K, &V) -> Ordering) -> Option<V> {
        let (block, place) = self.find_by(order).ok()?;
        let (_, value) = self.blocks[block].remove(place);
        self.len -= 1;
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
        } else if self.blocks[block].len() < FULL / 4 {
            self.join(block);
        }
        Some(value)
    }

    fn find_by(&self, order: impl Fn(&K, &V) -> Ordering) -> Result<(usize, usize), (usize, usize)> {
        let is_at_or_before =
            |block: &Vec<(K, V)>| block.first().is_some_and(|(key, value)| order(key, value).is_le());
        let block = self.blocks.partition_point(is_at_or_before).saturating_sub(1);
        let Some(entries) = self.blocks.get(block) else { return Err((0, 0)) };
        match entries.binary_search_by(|(key, value)| order(key, value)) {
            Ok(place) => Ok((block, place)),
            Err(place) => Err((block, place)),
        }
    }

    /// Returns where it has come to stand.
    fn insert_at(&mut self, mut block: usize, mut place: usize, entry: (K, V)) -> (usize, usize) {
        self.len += 1;
        if self.blocks.is_empty() {
            // A session's few leases are one block, and there are many sessions.
            self.blocks.reserve_exact(1);
            self.blocks.push(Vec::new());
        }
        if self.blocks[block].len() >= FULL {
            // Keys that come in order leave full blocks behind them.
            let cut = if place > FULL * 3 / 4 { place } else { FULL / 2 };
            let mut rest = Vec::with_capacity(FULL - cut + GROWTH);
            rest.extend(self.blocks[block].drain(cut..));
            self.blocks[block].shrink_to_fit();
            if place >= cut {
                (block, place) = (block + 1, place - cut);
                self.blocks.insert(block, rest);
            } else {
                self.blocks.insert(block + 1, rest);
            }
        }
        let entries = &mut self.blocks[block];
        if entries.len() == entries.capacity() {
            entries.reserve_exact(GROWTH);
        }
        entries.insert(place, entry);
        (block, place)
    }

    /// Joins a small block with a neighbour if they fit into one with room to spare.
    fn join(&mut self, block: usize) {
        let fits = |first: usize| {
            let pair = self.blocks.get(first).zip(self.blocks.get(first + 1));
            pair.is_some_and(|(one, next)| one.len() + next.len() <= FULL * 3 / 4)
        };
        let Some(first) =
            [Some(block), block.checked_sub(1)].into_iter().flatten().find(|first| fits(*first))
        else {
            return;
        };
        let next = self.blocks.remove(first + 1);
        let entries = &mut self.blocks[first];
        entries.reserve_exact(next.len());
        entries.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn assert_same(map: &BlockMap<u16, u32>, model: &BTreeMap<u16, u32>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
        assert!(map.blocks.iter().all(|block| !block.is_empty() && block.len() <= FULL));
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec((0u16..400, any::<bool>(), any::<u32>()), 0..700), from: u16) {
            let (mut map, mut model) = (BlockMap::default(), BTreeMap::new());
            for (key, insert, value) in steps {
                if insert {
                    assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    assert_eq!(map.remove(&key), model.remove(&key));
                }
                assert_eq!(map.get(&key), model.get(&key));
                assert_eq!(map.contains_key(&key), model.contains_key(&key));
            }
            assert_same(&map, &model);
            let from = from % 420;
            assert!(map.range_from(&from).eq(model.range(from..)));
        }
    }

    #[test]
    fn keys_in_order_fill_their_blocks() {
        let mut map = BlockMap::default();
        for key in 0..10_000u32 {
            assert_eq!(map.get_or_insert_with(key, || key), (true, &key, &mut { key }));
        }
        assert!(map.blocks.len() <= 10_000 / FULL + 1, "{} blocks", map.blocks.len());
        assert_eq!(map.get_or_insert_with(77, || 78), (false, &77, &mut 77));
        *map.get_mut(&77).unwrap() = 1;
        assert_eq!(map.get(&77), Some(&1));
    }

    #[test]
    fn what_is_emptied_does_not_stay() {
        let mut map = BlockMap::default();
        for key in 0..1_000 {
            assert_eq!(map.insert(key, key), None);
        }
        for key in (0..1_000).filter(|key| key % 16 != 0) {
            assert_eq!(map.remove(&key), Some(key));
        }
        assert!(map.blocks.len() <= 4, "{} blocks for {} keys", map.blocks.len(), map.len());
        for key in (0..1_000).step_by(16) {
            assert_eq!(map.remove(&key), Some(key));
        }
        assert!(map.blocks.is_empty());
    }
}
