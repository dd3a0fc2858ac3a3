//! Fills an empty journal from another one (D12): in which order is the same everywhere; where things lie is the engine's
//! affair.

use async_trait::async_trait;

use super::damaged_slot;
use crate::{Chained, Head, ImportError, OpenError, ReadError, Reader, Slots, SnapshotInfo, Tail};

/// One journal being filled; nobody can open it before the end.
#[async_trait]
pub trait Filling: Send + Sync {
    /// Makes the head of an unfinished journal; what an earlier attempt left does no harm.
    async fn begin(&self, head: &Head) -> Result<(), ImportError>;

    /// Stores the snapshot, and makes it the tail.
    async fn snapshot(&self, from: &mut dyn Reader, info: &SnapshotInfo) -> Result<(), ImportError>;

    /// Stores slots, of which there are some; the tail after them.
    async fn slots(&self, found: &[Chained]) -> Result<Tail, ImportError>;

    /// Makes it a journal that may be recovered.
    async fn end(&self, head: &Head) -> Result<(), ImportError>;
}

/// Copies snapshot and slots, then makes the copy a journal.
///
/// # Errors
/// What cannot be read or written; nobody can open what is unfinished.
pub async fn fill(filling: &impl Filling, from: &mut dyn Reader) -> Result<Tail, ImportError> {
    let head = from.head().await?;
    filling.begin(&head).await?;
    let mut tail = Tail::default();
    if let Some(info) = from.snapshot().await? {
        filling.snapshot(from, &info).await?;
        tail = info.at;
    }
    while tail.slot < head.tail.slot {
        let found = next_slots(from, tail).await?;
        tail = filling.slots(&found).await?;
    }
    filling.end(&head).await?;
    Ok(tail)
}

/// There is something already.
pub fn not_empty() -> ImportError {
    ImportError::NotEmpty("there is a journal of this name".to_owned())
}

/// Somebody else has begun anew what we are filling.
pub fn filled_by_another() -> ImportError {
    ImportError::Target(OpenError::InUse("another one is filling it at the same time".to_owned()))
}

/// The next slots of a journal that is being copied, after `tail` and up to its end.
async fn next_slots(from: &mut dyn Reader, tail: Tail) -> Result<Vec<Chained>, ReadError> {
    let next = tail.slot.next();
    match from.slots(next).await? {
        Slots::Found(found) if found.is_empty() => {
            Err(damaged_slot(next, "it is before the tail but cannot be read"))
        }
        Slots::Found(found) => Ok(found),
        Slots::Compacted { .. } => Err(ReadError::Replaced),
    }
}
