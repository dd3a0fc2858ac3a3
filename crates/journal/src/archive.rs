//! A backup file: one journal's snapshot and the slots after it, under one checksum.
//!
//! [`write_archive`] makes one from any [`crate::Reader`], beside a live writer too. [`Archive`] is itself one, so that
//! [`crate::Journal::import`] fills an empty journal from a file or from another engine in the same way.
//!
//! The layout, all numbers little-endian:
//!
//! ```text
//! magic "LHARCHIV" · version u32 · cluster 16 · epoch u64 · nonce 16 · tail (slot u64, hash 32)
//! snapshot u8 (0: none) · if 1: at (slot u64, hash 32) · chunks u32 · whole hash 32
//! each chunk: length u32 · bytes
//! each slot after the snapshot: epoch u64 · batch id 16 · length u32 · body · hash 32
//! checksum over everything before it: BLAKE3, 32
//! ```

mod read;
mod write;

pub use read::Archive;
pub use write::{ArchiveError, Summary, must_be_new, write_archive};

use leasehold_types::Slot;

use crate::{ReadError, Slots};

const MAGIC: &[u8; 8] = b"LHARCHIV";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: u64 = 32;

/// What to say when a reader that promised `slot` does not give it.
pub(crate) fn missing(slot: Slot, found: &Slots) -> ReadError {
    match found {
        Slots::Compacted { .. } => ReadError::Replaced,
        Slots::Found(_) => ReadError::Corrupt {
            place: format!("slot {slot}"),
            detail: "it is before the tail but cannot be read".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests;
