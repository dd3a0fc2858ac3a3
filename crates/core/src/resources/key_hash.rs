//! A hash of keys, to find quickly what is then compared. It has no secret, and callers choose names: nothing may depend on it but
//! speed, and of that only a little.

use leasehold_types::ResourceKey;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Its upper bits are its best.
pub(super) fn of(key: &ResourceKey) -> u64 {
    let bytes = key.as_str().as_bytes();
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(eight)).wrapping_mul(SPREAD);
        hash ^= hash >> 32;
    }
    hash.wrapping_mul(SPREAD)
}

/// The part of a hash that stands beside a place, to tell most others from it: not the bits that a bucket was chosen by.
pub(super) fn tag(hash: u64) -> u32 {
    (hash >> 16) as u32
}
