//! Where a search ended. Nothing depends on it but speed: whoever uses it looks whether it is still true.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module. Atomic only so that looking needs no exclusive access; a lost update costs one search.
#[derive(Debug, Default)]
pub(super) struct Hint(AtomicU64);

impl Hint {
    /// Block and place in it.
    pub(super) fn get(&self) -> (usize, usize) {
        let both = self.0.load(Relaxed);
        ((both >> 32) as usize, both as u32 as usize)
    }

    pub(super) fn set(&self, (block, place): (usize, usize)) {
        self.0.store((block as u64) << 32 | place as u64, Relaxed);
    }
}

impl Clone for Hint {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Relaxed)))
    }
}
