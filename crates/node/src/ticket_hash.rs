//! A hash for tickets: they are counted by the loop itself, so nobody can choose them to collide, and one
//! multiplication spreads them well enough.

use std::hash::Hasher;

/// See the module.
#[derive(Clone, Copy, Default)]
pub(crate) struct TicketHasher(u64);

/// 2^64 divided by the golden ratio: consecutive numbers land far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for TicketHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(SPREAD);
    }
}
