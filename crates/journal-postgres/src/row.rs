//! Between the columns and the vocabulary. PostgreSQL has no unsigned numbers and no ids of ours.

use bytes::Bytes;
use leasehold_journal::{BatchId, Hash, Tail};
use leasehold_types::Slot;
use tokio_postgres::Row;

/// A counter as the engine keeps it.
pub(crate) fn number(counter: u64) -> i64 {
    i64::try_from(counter).expect("slots and epochs stay below 2^63: one a nanosecond for three centuries")
}

/// A counter as read; a negative one was never written by us and becomes 0.
pub(crate) fn counter(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}

pub(crate) fn slot(row: &Row, column: usize) -> Slot {
    Slot(counter(row, column))
}

/// Fixed bytes; `None` when the column has another length, which is damage.
pub(crate) fn fixed<const N: usize>(row: &Row, column: usize) -> Option<[u8; N]> {
    row.get::<_, Option<&[u8]>>(column).and_then(|bytes| bytes.try_into().ok())
}

pub(crate) fn hash(row: &Row, column: usize) -> Option<Hash> {
    fixed(row, column).map(Hash)
}

/// A tail in two columns: the slot, then the hash.
pub(crate) fn tail(row: &Row, column: usize) -> Option<Tail> {
    Some(Tail { slot: slot(row, column), hash: hash(row, column + 1)? })
}

pub(crate) fn batch_id(row: &Row, column: usize) -> Option<BatchId> {
    fixed(row, column).map(|bytes| BatchId(u128::from_be_bytes(bytes)))
}

pub(crate) fn body(row: &Row, column: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, Option<&[u8]>>(column).unwrap_or_default())
}
