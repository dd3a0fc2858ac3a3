//! Which full records were used lately, by a hash of their keys: one of these is found without a search in the order.
//!
//! Nothing depends on it but speed. Whoever finds a place here looks whether the record there is still the one of that
//! key; a key has one full record at most. Keys that are chosen to collide push each other out and are searched for.

use leasehold_types::ResourceKey;

use crate::arena::{Arena, Ix};
use crate::resource::Full;

/// Buckets at first, and at most: 1 MiB, for about as many records as are remembered.
const LEAST: usize = 64;
const MOST: usize = 1 << 17;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the module. There are two places for every hash, the one that was set last first.
#[derive(Clone, Debug, Default)]
pub(super) struct Lately(Vec<[Option<Ix<Full>>; 2]>);

impl Lately {
    /// The full record of this key, if it is known here.
    pub(super) fn get(&self, key: &ResourceKey, full: &Arena<Full>) -> Option<Ix<Full>> {
        let bucket = self.0.get(self.bucket(key)?)?;
        bucket.iter().flatten().copied().find(|ix| full.find(*ix).is_some_and(|record| record.key == *key))
    }

    /// This is the full record of this key, and there are so many.
    pub(super) fn set(&mut self, key: &ResourceKey, ix: Ix<Full>, records: usize) {
        if self.0.len() < records.clamp(LEAST, MOST) {
            self.0 = vec![[None; 2]; (2 * self.0.len()).max(LEAST)];
        }
        if let Some(number) = self.bucket(key) {
            let [first, second] = &mut self.0[number];
            if *first != Some(ix) {
                *second = first.replace(ix);
            }
        }
    }

    /// The upper bits of a hash are its best; there are none while there are no buckets.
    fn bucket(&self, key: &ResourceKey) -> Option<usize> {
        let bits = self.0.len().checked_ilog2()?;
        Some((hash(key.as_str().as_bytes()) >> (u64::BITS - bits)) as usize)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(eight)).wrapping_mul(SPREAD);
        hash ^= hash >> 32;
    }
    hash.wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use leasehold_types::{ResourceName, TenantName};

    use super::*;

    fn key(number: usize) -> ResourceKey {
        let name = ResourceName::new(&format!("lock/{number}")).expect("a name");
        ResourceKey::new(&TenantName::default_tenant(), &name)
    }

    #[test]
    fn most_records_are_found_whose_names_differ_in_a_digit() {
        let (mut records, mut lately) = (Arena::default(), Lately::default());
        assert_eq!(lately.get(&key(0), &records), None);
        let mut all = Vec::new();
        for number in 0..10_000 {
            let ix = records.insert(Full::new(key(number), None));
            lately.set(&key(number), ix, records.len());
            all.push(ix);
        }
        // The larger table began empty.
        for (number, ix) in all.iter().enumerate() {
            lately.set(&key(number), *ix, records.len());
        }
        let found = |number: &usize| lately.get(&key(*number), &records) == Some(all[*number]);
        let found = (0..10_000).filter(found).count();
        assert!(found > 9_000, "{found} of 10,000");
        assert_eq!(lately.get(&key(10_000), &records), None);
    }

    #[test]
    fn a_record_that_is_gone_or_another_ones_now_is_not_found() {
        let (mut records, mut lately) = (Arena::default(), Lately::default());
        let ix = records.insert(Full::new(key(1), None));
        lately.set(&key(1), ix, 1);
        assert_eq!(lately.get(&key(1), &records), Some(ix));
        records.remove(ix);
        assert_eq!(lately.get(&key(1), &records), None);
        assert_eq!(records.insert(Full::new(key(2), None)), ix, "a place is used again");
        assert_eq!(lately.get(&key(1), &records), None);
        assert_eq!(lately.get(&key(2), &records), None, "nobody has said so");
    }
}
