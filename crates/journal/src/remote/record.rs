//! The bytes of a record on a key-value engine. All numbers are big-endian, every part has a fixed place, and bodies
//! come last.

use bytes::{BufMut, Bytes, BytesMut};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

use crate::{Batch, BatchId, Chained, Hash, OpenError, SnapshotInfo, Tail};

/// The format that this build writes, and the only one it reads.
pub const FORMAT: u32 = 1;

/// How much of a journal a record is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// It is being filled from another one: nobody may read or claim it.
    Filling = 0,
    /// It is a copy, or was cut after a damage: only a claim that accepts loss may have it, until that has committed.
    Unrecovered = 1,
    /// Anybody may claim it.
    Whole = 2,
}

impl Stage {
    /// The reason to refuse a claim at this stage; `None` if it may go on.
    pub fn refusal(self, accept_loss: bool) -> Option<OpenError> {
        match self {
            Self::Filling => Some(OpenError::Unsuitable(
                "it was begun to be filled from another journal and not finished; fill it again".to_owned(),
            )),
            Self::Unrecovered if !accept_loss => Some(OpenError::Regressed(
                "it was filled from elsewhere or cut after a damage, and may be older than what was served; run \
                 `leasehold recover`"
                    .to_owned(),
            )),
            Self::Unrecovered | Self::Whole => None,
        }
    }

    /// The stage of this number, as stored.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Filling, Self::Unrecovered, Self::Whole].into_iter().find(|stage| *stage as u8 == number)
    }
}

/// What a journal is: `format u32 · stage u8 · cluster 16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The format of everything else.
    pub format: u32,
    /// Whether it may be read and claimed.
    pub stage: Stage,
    /// The id of the journal.
    pub cluster: ClusterId,
}

impl Identity {
    /// The bytes.
    pub fn encode(&self) -> Bytes {
        let mut into = BytesMut::with_capacity(21);
        into.put_u32(self.format);
        into.put_u8(self.stage as u8);
        into.put_slice(self.cluster.as_bytes());
        into.freeze()
    }

    /// Of a journal that anybody may claim.
    pub fn whole(cluster: ClusterId) -> Self {
        Self { format: FORMAT, stage: Stage::Whole, cluster }
    }

    /// What a claim may have.
    ///
    /// # Errors
    /// The bytes are damaged, of a newer format, or of a journal that this claim may not have.
    pub fn to_claim(
        bytes: &[u8],
        accept_loss: bool,
        damaged: impl FnOnce() -> OpenError,
    ) -> Result<Self, OpenError> {
        let identity = Self::decode(bytes).ok_or_else(damaged)?;
        if identity.format != FORMAT {
            return Err(OpenError::TooNew(format!("format {}, this build knows {FORMAT}", identity.format)));
        }
        identity.stage.refusal(accept_loss).map_or(Ok(identity), Err)
    }

    /// What the first commit of a recovery makes of it; `None` when the claim was none: nothing was cut, and it is whole.
    pub fn recovered(self, cut: bool) -> Option<Self> {
        let recovers = cut || self.stage == Stage::Unrecovered;
        recovers.then_some(Self { stage: Stage::Whole, ..self })
    }

    /// Reads the bytes; `None` when they are damaged. A newer format may have more of them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Parts(bytes);
        let format = u32::from_be_bytes(from.take()?);
        let [stage] = from.take()?;
        let stage = Stage::from_number(stage)?;
        Some(Self { format, stage, cluster: ClusterId::from_bytes(from.take()?) })
    }
}

/// Who may append: `epoch u64 · nonce 16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The epoch of one claim.
    pub epoch: Epoch,
    /// Its nonce.
    pub nonce: Nonce,
}

impl Holder {
    /// The bytes, which engines compare as a whole.
    pub fn encode(&self) -> Bytes {
        let mut into = BytesMut::with_capacity(24);
        into.put_u64(self.epoch.0);
        into.put_slice(self.nonce.as_bytes());
        into.freeze()
    }

    /// Reads the bytes; `None` when they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Parts(bytes);
        let holder = Self { epoch: Epoch(from.number()?), nonce: Nonce::from_bytes(from.take()?) };
        from.end().map(|()| holder)
    }
}

/// The bytes of a tail: `slot u64 · hash 32`.
pub fn encode_tail(tail: Tail) -> Bytes {
    let mut into = BytesMut::with_capacity(40);
    into.put_u64(tail.slot.0);
    into.put_slice(&tail.hash.0);
    into.freeze()
}

/// Reads a tail; `None` when it is damaged.
pub fn decode_tail(bytes: &[u8]) -> Option<Tail> {
    let mut from = Parts(bytes);
    let tail = Tail { slot: Slot(from.number()?), hash: Hash(from.take()?) };
    from.end().map(|()| tail)
}

/// The bytes of a counter.
pub fn encode_number(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// Reads a counter; `None` when it is damaged.
pub fn decode_number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

/// Bytes that [`encode_slot`] adds to a body.
pub const SLOT_OVERHEAD: usize = 8 + 16 + 32 + 32;

/// The bytes of a slot: `epoch u64 · batch id 16 · hash before 32 · hash 32 · body`. Its number is in its key.
pub fn encode_slot(batch: &Chained) -> Bytes {
    let mut into = BytesMut::with_capacity(SLOT_OVERHEAD + batch.body.len());
    into.put_u64(batch.epoch().0);
    into.put_u128(batch.id.0);
    into.put_slice(&batch.prev_hash.0);
    into.put_slice(&batch.hash().0);
    into.put_slice(&batch.body);
    into.freeze()
}

/// Reads a slot; `None` when it is too short, or not what its hash says.
pub fn decode_slot(slot: Slot, bytes: &Bytes) -> Option<Chained> {
    let mut from = Parts(bytes);
    let epoch = Epoch(from.number()?);
    let id = BatchId(u128::from_be_bytes(from.take()?));
    let (prev_hash, hash) = (Hash(from.take()?), Hash(from.take()?));
    let body = bytes.slice(SLOT_OVERHEAD..);
    Chained::checked(Batch { slot, id, prev_hash, body }, epoch, hash)
}

/// What makes a snapshot current: `id 16 · slot u64 · hash at it 32 · chunks u32 · whole hash 32`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    /// Names its chunks; random, since two snapshots of one slot must not share any.
    pub id: [u8; 16],
    /// The rest.
    pub info: SnapshotInfo,
}

impl Pointer {
    /// The bytes.
    pub fn encode(&self) -> Bytes {
        let mut into = BytesMut::with_capacity(92);
        into.put_slice(&self.id);
        into.put_u64(self.info.at.slot.0);
        into.put_slice(&self.info.at.hash.0);
        into.put_u32(self.info.chunks);
        into.put_slice(&self.info.hash.0);
        into.freeze()
    }

    /// Reads the bytes; `None` when they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Parts(bytes);
        let id = from.take()?;
        let at = Tail { slot: Slot(from.number()?), hash: Hash(from.take()?) };
        let info = SnapshotInfo { at, chunks: u32::from_be_bytes(from.take()?), hash: Hash(from.take()?) };
        from.end().map(|()| Self { id, info })
    }
}

/// What is left to be read of some bytes.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*part)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_as_it_was_written_and_nothing_shorter() {
        let holder = Holder { epoch: Epoch(7), nonce: Nonce::from_bytes([3; 16]) };
        assert_eq!(Holder::decode(&holder.encode()), Some(holder));
        assert_eq!(Holder::decode(&holder.encode()[1..]), None);
        let tail = Tail { slot: Slot(9), hash: Hash([2; 32]) };
        assert_eq!(decode_tail(&encode_tail(tail)), Some(tail));
        assert_eq!(decode_tail(&encode_tail(tail)[..39]), None);
        let identity =
            Identity { format: FORMAT, stage: Stage::Whole, cluster: ClusterId::from_bytes([5; 16]) };
        assert_eq!(Identity::decode(&identity.encode()), Some(identity));
        let info = SnapshotInfo { at: tail, chunks: 4, hash: Hash([8; 32]) };
        let pointer = Pointer { id: [6; 16], info };
        assert_eq!(Pointer::decode(&pointer.encode()), Some(pointer.clone()));
        assert_eq!(Pointer::decode(&pointer.encode()[..90]), None);
    }

    #[test]
    fn a_slot_keeps_its_bytes() {
        let batch = Batch { slot: Slot(4), id: BatchId(11), prev_hash: Hash([1; 32]), body: "facts".into() };
        let committed = Chained::new(batch, Epoch(2));
        let bytes = encode_slot(&committed);
        assert_eq!(bytes.len(), SLOT_OVERHEAD + 5);
        assert_eq!(decode_slot(Slot(4), &bytes), Some(committed));
        assert_eq!(decode_slot(Slot(4), &bytes.slice(..SLOT_OVERHEAD - 1)), None);
    }
}
