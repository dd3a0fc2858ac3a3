//! The chunks of a snapshot, read in order so that their hash can be checked as a whole.

use async_trait::async_trait;
use bytes::Bytes;

use super::damaged_snapshot;
use super::record::Pointer;
use crate::{ReadError, SnapshotHasher, SnapshotInfo};

/// Why a chunk of the snapshot with this id is not there: the present pointer is to another one, or it is damaged.
pub fn missing_chunk(snapshot: &SnapshotInfo, index: u32, id: [u8; 16], now: Option<&Pointer>) -> ReadError {
    match now {
        Some(now) if now.id == id => damaged_snapshot(snapshot, &format!("chunk {index} is missing")),
        _ => ReadError::Replaced,
    }
}

/// Where a reader finds the chunks of snapshots.
#[async_trait]
pub trait StoredChunks: Send {
    /// One chunk as stored, if the snapshot is still the current one.
    async fn stored_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError>;

    /// What was read of it so far.
    fn check(&mut self) -> &mut ChunkCheck;

    /// One chunk, and before it all that its check needs.
    async fn checked_chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let mut next = self.check().needs_from(snapshot, index);
        loop {
            let chunk = self.stored_chunk(snapshot, next).await?;
            self.check().take(&chunk)?;
            if next == index {
                return Ok(chunk);
            }
            next += 1;
        }
    }
}

/// The running hash over the chunks of one snapshot, so that the last one is given only if all are right (J13).
#[derive(Default)]
pub struct ChunkCheck(Option<Progress>);

struct Progress {
    info: SnapshotInfo,
    next: u32,
    hasher: SnapshotHasher,
}

impl ChunkCheck {
    /// The first chunk that must be read, and passed to [`ChunkCheck::take`], before the one at `index`.
    fn needs_from(&mut self, snapshot: &SnapshotInfo, index: u32) -> u32 {
        match &self.0 {
            Some(progress) if progress.info == *snapshot && progress.next <= index => progress.next,
            _ => {
                self.0 =
                    Some(Progress { info: snapshot.clone(), next: 0, hasher: SnapshotHasher::default() });
                0
            }
        }
    }

    /// Takes the next chunk in.
    /// It fails if it was the last, and the whole is not what the snapshot's hash says.
    fn take(&mut self, chunk: &Bytes) -> Result<(), ReadError> {
        let progress = self.0.as_mut().expect("needs_from was asked before");
        progress.hasher.update(chunk);
        progress.next += 1;
        if progress.next == progress.info.chunks && progress.hasher.finish() != progress.info.hash {
            return Err(damaged_snapshot(&progress.info, "its chunks are not what its hash says"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::Slot;

    use super::*;
    use crate::{Hash, Tail};

    #[test]
    fn the_last_chunk_is_refused_when_another_was_changed() {
        let mut hasher = SnapshotHasher::default();
        for chunk in ["one", "two"] {
            hasher.update(chunk.as_bytes());
        }
        let at = Tail { slot: Slot(3), hash: Hash([1; 32]) };
        let info = SnapshotInfo { at, chunks: 2, hash: hasher.finish() };
        for (first, right) in [("one", true), ("forged", false)] {
            let mut check = ChunkCheck::default();
            assert_eq!(check.needs_from(&info, 1), 0);
            check.take(&Bytes::copy_from_slice(first.as_bytes())).unwrap();
            assert_eq!(check.needs_from(&info, 1), 1);
            assert_eq!(check.take(&Bytes::from_static(b"two")).is_ok(), right);
        }
    }
}
