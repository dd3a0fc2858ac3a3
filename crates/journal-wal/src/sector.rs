//! Sectors: 512 bytes that are whole, or zero, or corrupt, and nothing between (J12).
//!
//! A disk writes a sector whole or not at all. Segments are zero-filled before use, so an unfinished write leaves zero
//! sectors, and whatever else does not check is damage. The checksum also covers where the sector belongs, so that a
//! right sector in a wrong place is damage too.

use leasehold_journal::{Batch, BatchId, Chained, Hash};
use leasehold_types::{ClusterId, Epoch, Slot};

/// Size of a sector: the smallest unit that disks write atomically.
pub(crate) const BYTES: usize = 512;
/// checksum u32 · index u16 · length u16 · slot u64.
const HEADER: usize = 16;
/// What a sector carries.
pub(crate) const PAYLOAD: usize = BYTES - HEADER;
/// epoch u64 · batch id u128 · body length u32 · chain hash.
const BATCH_HEADER: usize = 8 + 16 + 4 + 32;
/// The index of a segment's header sector; no batch is that long.
pub(crate) const SEGMENT_HEADER: u16 = u16::MAX;

const ZERO: [u8; BYTES] = [0; BYTES];

/// Begins the checksum of every sector of one segment, so that no sector is right in another segment or cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Salt(u32);

impl Salt {
    pub(crate) fn new(cluster: ClusterId, segment: u64) -> Self {
        Self(crc32c::crc32c_append(crc32c::crc32c(cluster.as_bytes()), &segment.to_le_bytes()))
    }

    fn checksum(self, number: u64, sector: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, &number.to_le_bytes()), &sector[4..])
    }
}

/// What a sector is.
pub(crate) enum Sector<'a> {
    /// Never written, or not completely: a torn write.
    Zero,
    /// As it was written.
    Whole {
        /// Its place in its batch.
        index: u16,
        /// The slot of the batch.
        slot: Slot,
        /// What it carries.
        payload: &'a [u8],
    },
    /// Neither.
    Corrupt,
}

impl<'a> Sector<'a> {
    /// Looks at sector `number` of a segment.
    pub(crate) fn read(salt: Salt, number: u64, bytes: &'a [u8]) -> Self {
        if bytes == ZERO {
            return Self::Zero;
        }
        let (checksum, index, len, slot) =
            (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6), u64_at(bytes, 8));
        if salt.checksum(number, bytes) != checksum || usize::from(len) > PAYLOAD {
            return Self::Corrupt;
        }
        Self::Whole { index, slot: Slot(slot), payload: &bytes[HEADER..HEADER + usize::from(len)] }
    }
}

/// How many sectors a batch with a body of this length takes.
pub(crate) fn sectors_for(body: usize) -> usize {
    (BATCH_HEADER + body).div_ceil(PAYLOAD)
}

/// The longest body that fits so many sectors.
pub(crate) fn body_in(sectors: usize) -> usize {
    (sectors * PAYLOAD).saturating_sub(BATCH_HEADER)
}

/// Fills one sector at the end of `out`.
pub(crate) fn push(out: &mut Vec<u8>, salt: Salt, number: u64, index: u16, slot: Slot, payload: &[u8]) {
    let start = out.len();
    let len = u16::try_from(payload.len()).expect("a payload fits its sector");
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&slot.0.to_le_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(&ZERO[HEADER + payload.len()..]);
    let checksum = salt.checksum(number, &out[start..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// The sectors of a committed batch that begins at sector `first`.
pub(crate) fn encode(out: &mut Vec<u8>, salt: Salt, first: u64, batch: &Chained) {
    let mut stream = Vec::with_capacity(BATCH_HEADER + batch.body.len());
    stream.extend_from_slice(&batch.epoch().0.to_le_bytes());
    stream.extend_from_slice(&batch.id.0.to_le_bytes());
    let len = u32::try_from(batch.body.len()).expect("a body is below the limit");
    stream.extend_from_slice(&len.to_le_bytes());
    stream.extend_from_slice(&batch.hash().0);
    stream.extend_from_slice(&batch.body);
    for (index, payload) in stream.chunks(PAYLOAD).enumerate() {
        let index = u16::try_from(index).expect("a body is below the limit");
        push(out, salt, first + u64::from(index), index, batch.slot, payload);
    }
}

/// How many sectors the batch takes that begins with this payload; `None` if it cannot be a beginning.
pub(crate) fn sectors_of(first_payload: &[u8]) -> Option<usize> {
    let len = first_payload.get(24..28)?;
    Some(sectors_for(u32_at(len, 0) as usize))
}

/// The batch whose payloads, one after the other, are `stream`; `None` if it does not follow the chain.
pub(crate) fn decode(stream: &bytes::Bytes, slot: Slot, prev_hash: Hash) -> Option<Chained> {
    let header = stream.get(..BATCH_HEADER)?;
    let epoch = Epoch(u64_at(header, 0));
    let id = BatchId(u128::from_le_bytes(header[8..24].try_into().ok()?));
    let hash = Hash(header[28..60].try_into().ok()?);
    let body = stream.slice(BATCH_HEADER..);
    if body.len() != u32_at(header, 24) as usize {
        return None;
    }
    Chained::checked(Batch { slot, id, prev_hash, body }, epoch, hash)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(len: usize) -> Chained {
        let batch = Batch {
            slot: Slot(7),
            id: BatchId(9),
            prev_hash: Hash([1; 32]),
            body: bytes::Bytes::from(vec![0xEE; len]),
        };
        Chained::new(batch, Epoch(3))
    }

    #[test]
    fn a_batch_takes_as_many_sectors_as_said_and_reads_back() {
        let salt = Salt::new(ClusterId::from_bytes([5; 16]), 2);
        for len in [0, 1, PAYLOAD - BATCH_HEADER, PAYLOAD - BATCH_HEADER + 1, 5_000] {
            let written = committed(len);
            let mut out = Vec::new();
            encode(&mut out, salt, 11, &written);
            assert_eq!(out.len(), sectors_for(len) * BYTES, "{len}");
            assert!(body_in(sectors_for(len)) >= len && body_in(sectors_for(len) - 1) < len.max(1), "{len}");
            let mut stream = Vec::new();
            for (index, sector) in out.chunks(BYTES).enumerate() {
                let number = 11 + index as u64;
                let Sector::Whole { index: found, slot, payload } = Sector::read(salt, number, sector) else {
                    panic!("sector {index} of {len} is not whole");
                };
                assert_eq!((usize::from(found), slot), (index, Slot(7)));
                stream.extend_from_slice(payload);
            }
            assert_eq!(decode(&stream.into(), Slot(7), Hash([1; 32])), Some(written));
        }
    }

    #[test]
    fn every_changed_bit_and_every_wrong_place_is_corrupt() {
        let cluster = ClusterId::from_bytes([5; 16]);
        let salt = Salt::new(cluster, 2);
        let mut out = Vec::new();
        encode(&mut out, salt, 11, &committed(100));
        for bit in 0..BYTES * 8 {
            let mut changed = out.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Sector::read(salt, 11, &changed), Sector::Corrupt), "bit {bit}");
        }
        assert!(matches!(Sector::read(salt, 12, &out), Sector::Corrupt), "another sector");
        assert!(matches!(Sector::read(Salt::new(cluster, 3), 11, &out), Sector::Corrupt), "another segment");
        assert!(matches!(Sector::read(salt, 11, &ZERO), Sector::Zero));
    }
}
