//! What is wrong with the end of a record when it is opened (J12), and how far `recover` may go.

use leasehold_types::Slot;

use super::damaged_slot;
use crate::{OpenError, ReadError, Reader, Slots, Tail};

/// A record that has to be cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Up to here everything from the snapshot on is whole.
    pub whole: Tail,
    /// What is lost by cutting there, in words.
    pub lost: String,
}

/// Looks at the end of a record. Without `accept_loss` the last slot must be the one that the head names, unless it was
/// compacted away. With it the whole record is read, and what has to be cut is told.
///
/// # Errors
/// The record is damaged and no loss is accepted, or the engine does not answer.
pub async fn find_damage(
    reader: &mut dyn Reader,
    tail: Tail,
    accept_loss: bool,
) -> Result<Option<Damage>, OpenError> {
    if !accept_loss {
        return check_tail(reader, tail).await.map(|()| None);
    }
    let cut_at = last_whole(reader, tail).await?;
    Ok(cut_at.map(|(whole, why)| Damage {
        whole,
        lost: format!("slots {} to {}: {why}", whole.slot.next(), tail.slot),
    }))
}

/// Whether the last slot is the one that the head names, when it was not compacted away (J12).
async fn check_tail(reader: &mut dyn Reader, tail: Tail) -> Result<(), OpenError> {
    if tail.slot == Slot(0) {
        return Ok(());
    }
    match reader.slots(tail.slot).await.map_err(open_error)? {
        Slots::Compacted { .. } => Ok(()),
        Slots::Found(found) if found.first().is_some_and(|last| last.hash() == tail.hash) => Ok(()),
        Slots::Found(_) => Err(open_error(damaged_slot(tail.slot, "it is not the one that the head names"))),
    }
}

/// For `recover`: the last slot up to which everything from the snapshot on is whole, and why not further; `None` if
/// all is whole.
async fn last_whole(reader: &mut dyn Reader, tail: Tail) -> Result<Option<(Tail, String)>, OpenError> {
    let snapshot = reader.snapshot().await.map_err(open_error)?;
    let mut whole = snapshot.map_or(Tail::default(), |info| info.at);
    while whole.slot < tail.slot {
        let next = whole.slot.next();
        let found = match reader.slots(next).await {
            Ok(Slots::Found(found)) => found,
            Ok(Slots::Compacted { .. }) => {
                return Ok(Some((whole, format!("slot {next} was compacted away"))));
            }
            Err(ReadError::Corrupt { place, detail }) => {
                return Ok(Some((whole, format!("{place}: {detail}"))));
            }
            Err(other) => return Err(open_error(other)),
        };
        if found.first().is_none_or(|first| first.prev_hash != whole.hash) {
            return Ok(Some((whole, format!("slot {next} does not follow the chain"))));
        }
        whole = found.last().map_or(whole, |last| last.tail());
    }
    let other_hash = || (whole, "the last slot is not the one that the head names".to_owned());
    Ok((whole != tail).then(other_hash))
}

/// What reading says, as a reason not to open.
fn open_error(error: ReadError) -> OpenError {
    match error {
        ReadError::Corrupt { place, detail } => OpenError::Corrupt { place, detail },
        other => OpenError::Unavailable(other.to_string()),
    }
}
