//! A quick hash for maps whose keys are ids and numbers: nobody chooses them to collide, and a history has millions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with that hash. Only looked up by key: its order means nothing.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// Folds eight bytes at a time into one number by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fold(u64);

impl Fold {
    fn fold(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.fold(u64::from_le_bytes(number));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    fn finish(&self) -> u64 {
        // A map takes its place from the low bits, a multiplication mixes the high ones best.
        self.0.rotate_left(32)
    }
}
