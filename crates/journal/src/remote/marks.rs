//! The small values beside the slots, as a key-value engine gives them back.

use bytes::Bytes;
use leasehold_types::Slot;

use super::record::{Holder, Identity, Pointer, Stage, decode_number, decode_tail};
use super::whole_prefix;
use crate::{Chained, Head, ReadError, Slots, Tail};

/// A value as read; `None` if there is none.
type Value<'a> = Option<&'a Bytes>;

/// What bounds the slots that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Slots up to this one are gone.
    pub low: u64,
    /// The chain's end.
    pub tail: Tail,
}

impl Marks {
    /// The marks; `None` if there is no journal, or one that is only begun to be filled.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn of([identity, low, tail]: [Value<'_>; 3]) -> Result<Option<Self>, ReadError> {
        if identity_of(identity).is_none() {
            return Ok(None);
        }
        let low = low.and_then(|bytes| decode_number(bytes)).ok_or_else(|| damaged("low"))?;
        let tail = tail.and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged("tail"))?;
        Ok(Some(Self { low, tail }))
    }

    /// The slots from `from` on, within the marks; `found` gives those that were read, up to the tail.
    ///
    /// # Errors
    /// The first one must be there, and is missing or damaged.
    pub fn slots(self, from: Slot, found: impl FnOnce(Tail) -> Vec<Chained>) -> Result<Slots, ReadError> {
        if from.0 <= self.low {
            return Ok(Slots::Compacted { oldest: Slot(self.low).next() });
        }
        if from > self.tail.slot {
            return Ok(Slots::Found(Vec::new()));
        }
        whole_prefix(from, found(self.tail)).map(Slots::Found)
    }
}

/// The pointer to the current snapshot; `None` if there is none, or no journal.
///
/// # Errors
/// It is damaged.
pub fn pointer_of([identity, pointer]: [Value<'_>; 2]) -> Result<Option<Pointer>, ReadError> {
    // Where a value cannot be missing it is empty.
    let pointer = pointer.filter(|bytes| !bytes.is_empty() && identity_of(identity).is_some());
    pointer.map(|bytes| Pointer::decode(bytes).ok_or_else(|| damaged("snapshot"))).transpose()
}

/// What standbys watch.
///
/// # Errors
/// There is no journal yet, or a part of it is damaged.
pub fn head_of([identity, epoch, tail, beat]: [Value<'_>; 4]) -> Result<Head, ReadError> {
    let cluster = identity_of(identity).ok_or(ReadError::NotFounded)?.cluster;
    let holder = epoch.and_then(|bytes| Holder::decode(bytes)).ok_or_else(|| damaged("epoch"))?;
    let tail = tail.and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged("tail"))?;
    let beat = beat.and_then(|bytes| decode_number(bytes)).unwrap_or(0);
    Ok(Head { cluster, epoch: holder.epoch, nonce: holder.nonce, tail, beat })
}

/// The identity of a journal that may be read.
fn identity_of(value: Value<'_>) -> Option<Identity> {
    value.and_then(|bytes| Identity::decode(bytes)).filter(|identity| identity.stage > Stage::Filling)
}

fn damaged(part: &str) -> ReadError {
    let detail = "it is missing or has a wrong length".to_owned();
    ReadError::Corrupt { place: part.to_owned(), detail }
}

#[cfg(test)]
mod tests {
    use leasehold_types::{ClusterId, Epoch, Nonce};

    use super::*;
    use crate::remote::record::{FORMAT, encode_number, encode_tail};

    fn identity(stage: Stage) -> Bytes {
        Identity { format: FORMAT, stage, cluster: ClusterId::from_bytes([5; 16]) }.encode()
    }

    #[test]
    fn what_is_only_begun_to_be_filled_is_no_journal() {
        let (filling, tail, low) = (identity(Stage::Filling), encode_tail(Tail::default()), encode_number(0));
        let whole = identity(Stage::Whole);
        assert_eq!(Marks::of([Some(&filling), Some(&low), Some(&tail)]), Ok(None));
        let marks = Marks { low: 0, tail: Tail::default() };
        assert_eq!(Marks::of([Some(&whole), Some(&low), Some(&tail)]), Ok(Some(marks)));
        assert_eq!(head_of([None, None, None, None]), Err(ReadError::NotFounded));
        assert_eq!(pointer_of([Some(&whole), Some(&Bytes::new())]), Ok(None));
    }

    #[test]
    fn what_lies_outside_of_the_marks_is_not_looked_for() {
        let marks = Marks { low: 2, tail: Tail { slot: Slot(4), ..Tail::default() } };
        let unread = |_| panic!("nothing is read there");
        assert_eq!(marks.slots(Slot(2), unread), Ok(Slots::Compacted { oldest: Slot(3) }));
        assert_eq!(marks.slots(Slot(5), unread), Ok(Slots::Found(Vec::new())));
        assert!(matches!(marks.slots(Slot(3), |_| Vec::new()), Err(ReadError::Corrupt { .. })));
    }

    #[test]
    fn a_damaged_part_is_named() {
        let (whole, tail, short) =
            (identity(Stage::Whole), encode_tail(Tail::default()), Bytes::from_static(b"x"));
        let holder = Holder { epoch: Epoch(1), nonce: Nonce::from_bytes([2; 16]) }.encode();
        let place = |error: ReadError| match error {
            ReadError::Corrupt { place, .. } => place,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            Marks::of([Some(&whole), Some(&short), Some(&tail)]).map_err(place),
            Err("low".to_owned())
        );
        assert_eq!(pointer_of([Some(&whole), Some(&short)]).map_err(place), Err("snapshot".to_owned()));
        let head = |epoch, tail| head_of([Some(&whole), epoch, tail, None]).map(drop).map_err(place);
        assert_eq!(head(Some(&short), Some(&tail)), Err("epoch".to_owned()));
        assert_eq!(head(Some(&holder), None), Err("tail".to_owned()));
        assert_eq!(head(Some(&holder), Some(&tail)), Ok(()));
    }
}
