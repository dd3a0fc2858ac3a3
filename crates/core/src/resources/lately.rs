//! Which full records were used lately, by a hash of their keys: one of these is found without a search in the order.
//!
//! Nothing depends on it but speed. Whoever finds a place here looks whether the record there is still the one of that
//! key; a key has one full record at most. Keys that are chosen to collide push each other out and are searched for.

use leasehold_types::ResourceKey;

use super::key_hash;
use crate::arena::{Arena, Ix};
use crate::resource::Full;

/// Buckets at first, and at most: 2 MiB, for about as many records as are remembered.
const LEAST: usize = 64;
const MOST: usize = 1 << 17;

/// See the module. There are two places for every hash, the one that was set last first.
#[derive(Clone, Debug, Default)]
pub(super) struct Lately(Vec<[Option<Used>; 2]>);

/// A record that was used: its key's tag tells nearly always whether it is worth a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Used {
    tag: u32,
    ix: Ix<Full>,
}

impl Lately {
    /// The full record of this key, which has this hash, if it is known here.
    pub(super) fn get(&self, key: &ResourceKey, hash: u64, full: &Arena<Full>) -> Option<Ix<Full>> {
        let mut bucket = self.0.get(self.bucket(hash)?)?.iter().flatten();
        let is_its = |used: &&Used| {
            used.tag == key_hash::tag(hash) && full.find(used.ix).is_some_and(|record| record.key == *key)
        };
        bucket.find(is_its).map(|used| used.ix)
    }

    /// This is the full record of the key with this hash, and there are so many.
    pub(super) fn set(&mut self, hash: u64, ix: Ix<Full>, records: usize) {
        if self.0.len() < records.clamp(LEAST, MOST) {
            self.0 = vec![[None; 2]; (2 * self.0.len()).max(LEAST)];
        }
        let used = Used { tag: key_hash::tag(hash), ix };
        if let Some(number) = self.bucket(hash) {
            let [first, second] = &mut self.0[number];
            if *first != Some(used) {
                *second = first.replace(used);
            }
        }
    }

    /// The upper bits of a hash are its best; there are none while there are no buckets.
    fn bucket(&self, hash: u64) -> Option<usize> {
        let bits = self.0.len().checked_ilog2()?;
        Some((hash >> (u64::BITS - bits)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::key;
    use super::*;

    fn hash(number: usize) -> u64 {
        key_hash::of(&key(number))
    }

    fn get(lately: &Lately, number: usize, records: &Arena<Full>) -> Option<Ix<Full>> {
        lately.get(&key(number), hash(number), records)
    }

    #[test]
    fn most_records_are_found_whose_names_differ_in_a_digit() {
        let (mut records, mut lately) = (Arena::default(), Lately::default());
        assert_eq!(get(&lately, 0, &records), None);
        let mut all = Vec::new();
        for number in 0..10_000 {
            let ix = records.insert(Full::new(key(number), None));
            lately.set(hash(number), ix, records.len());
            all.push(ix);
        }
        // The larger table began empty.
        for (number, ix) in all.iter().enumerate() {
            lately.set(hash(number), *ix, records.len());
        }
        let found = |number: &usize| get(&lately, *number, &records) == Some(all[*number]);
        let found = (0..10_000).filter(found).count();
        assert!(found > 9_000, "{found} of 10,000");
        assert_eq!(get(&lately, 10_000, &records), None);
    }

    #[test]
    fn a_record_that_is_gone_or_another_ones_now_is_not_found() {
        let (mut records, mut lately) = (Arena::default(), Lately::default());
        let ix = records.insert(Full::new(key(1), None));
        lately.set(hash(1), ix, 1);
        assert_eq!(get(&lately, 1, &records), Some(ix));
        records.remove(ix);
        assert_eq!(get(&lately, 1, &records), None);
        assert_eq!(records.insert(Full::new(key(2), None)), ix, "a place is used again");
        assert_eq!(get(&lately, 1, &records), None);
        assert_eq!(get(&lately, 2, &records), None, "nobody has said so");
    }
}
