//! A hash of keys, to find quickly what is then compared. It has no secret, and callers choose names: nothing may depend on it but
//! speed, and of that only a little.

use leasehold_types::ResourceKey;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The part of a hash that stands beside a place, to tell most others from it.
pub(super) fn tag(key: &ResourceKey) -> u32 {
    let bytes = key.as_str().as_bytes();
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mixed(hash, u64::from_le_bytes(*word)));
    let last = match bytes.last_chunk::<8>() {
        // Some of it for the second time: faster than putting together what is left.
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    // Its upper bits are its best.
    (mixed(hash, last).wrapping_mul(SPREAD) >> 32) as u32
}

fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(SPREAD);
    hash ^ hash >> 32
}
