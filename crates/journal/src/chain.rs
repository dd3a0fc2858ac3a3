//! The chain (J9): every slot is hashed together with everything before it.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use leasehold_types::{Epoch, Slot};

use crate::Tail;

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash before the first slot.
    pub const ZERO: Self = Self([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| InvalidHash)
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: 64 hexadecimal digits")]
pub struct InvalidHash;

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Names one attempt to fill one slot, so that a writer recognises its own batch after an unknown outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BatchId(pub u128);

/// One batch of facts on its way into a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The slot it is for: the tail plus one.
    pub slot: Slot,
    /// Its own name; the same for every attempt with the same bytes.
    pub id: BatchId,
    /// The chain's hash at the slot before.
    pub prev_hash: Hash,
    /// What the node wrote; opaque here.
    pub body: Bytes,
}

/// A batch in the chain: with the epoch that appends it, and the chain's hash after it.
///
/// Both ways to make one see to it that its hash is right, and nothing of it can be changed: who has one, on its way into the
/// journal or read back, need not compute the hash again. The fields of its batch are read as its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chained {
    batch: Batch,
    epoch: Epoch,
    hash: Hash,
}

impl Chained {
    /// A batch that this epoch appends.
    pub fn new(batch: Batch, epoch: Epoch) -> Self {
        let hash = chain(&batch, epoch);
        Self { batch, epoch, hash }
    }

    /// What was read with this hash; nothing if it is not what its hash says (J12).
    pub fn checked(batch: Batch, epoch: Epoch, hash: Hash) -> Option<Self> {
        Some(Self::new(batch, epoch)).filter(|chained| chained.hash == hash)
    }

    /// The batch.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The epoch that appends it, or did.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The chain's hash after it: [`chain`] of the batch and its epoch.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The tail of a journal that ends with it.
    pub fn tail(&self) -> Tail {
        Tail { slot: self.slot, hash: self.hash }
    }
}

impl Deref for Chained {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}

/// Bytes that are hashed before a body.
const HEAD: usize = 32 + 8 + 8 + 16;
/// So much is hashed as one piece, for which the body is copied: blake3 works on several blocks side by side only if it is
/// given them together. A body of some KiB behind a head of its own takes up to three quarters longer; of one that is longer
/// than this, little.
const PIECE: usize = 64 << 10;

/// The chain's hash at a batch's slot: over everything before it, and the batch with its epoch.
pub fn chain(batch: &Batch, epoch: Epoch) -> Hash {
    let (begin, rest) = batch.body.split_at(batch.body.len().min(PIECE - HEAD));
    let mut piece = Vec::with_capacity(HEAD + begin.len());
    piece.extend_from_slice(&batch.prev_hash.0);
    piece.extend_from_slice(&batch.slot.0.to_le_bytes());
    piece.extend_from_slice(&epoch.0.to_le_bytes());
    piece.extend_from_slice(&batch.id.0.to_le_bytes());
    piece.extend_from_slice(begin);
    Hash(*blake3::Hasher::new().update(&piece).update(rest).finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals that exist were chained so.
    #[test]
    fn the_chain_is_over_the_hash_before_slot_epoch_id_and_body_in_this_order() {
        for length in [0, 1, 959, 960, 961, 5_000, PIECE - HEAD, PIECE - HEAD + 1, 70_000] {
            let body: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
            let prev_hash = Hash([7; 32]);
            let batch =
                Batch { slot: Slot(3), id: BatchId(5 << 64 | 6), prev_hash, body: body.clone().into() };
            let mut hasher = blake3::Hasher::new();
            hasher.update(&[7; 32]).update(&[3, 0, 0, 0, 0, 0, 0, 0]).update(&[4, 0, 0, 0, 0, 0, 0, 0]);
            hasher.update(&[6, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]).update(&body);
            assert_eq!(chain(&batch, Epoch(4)), Hash(*hasher.finalize().as_bytes()), "{length} bytes");
        }
    }

    #[test]
    fn what_is_not_what_its_hash_says_is_not_read() {
        let batch = Batch { slot: Slot(3), id: BatchId(5), prev_hash: Hash([7; 32]), body: "facts".into() };
        let chained = Chained::new(batch.clone(), Epoch(4));
        let read = |batch: &Batch, epoch| Chained::checked(batch.clone(), Epoch(epoch), chained.hash());
        assert_eq!(read(&batch, 4), Some(chained.clone()));
        assert_eq!(read(&batch, 5), None);
        for other in [
            Batch { slot: Slot(4), ..batch.clone() },
            Batch { id: BatchId(6), ..batch.clone() },
            Batch { prev_hash: Hash::ZERO, ..batch.clone() },
            Batch { body: "Facts".into(), ..batch.clone() },
        ] {
            assert_eq!(read(&other, 4), None, "{other:?}");
        }
    }
}
