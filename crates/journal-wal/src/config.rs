//! Settings of the embedded journal.

use std::path::PathBuf;

use leasehold_journal::Limits;

use crate::sector;

/// Settings of the embedded journal. Only the directory has no default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalConfig {
    /// The directory of the journal; made when it is not there. Nothing else may live in it.
    pub dir: PathBuf,
    /// Size of a segment. 64 MiB: half a million small batches before a rotation, and zero-filled in well under a
    /// second.
    pub segment_bytes: u64,
    /// Size of the very first segment, which is zero-filled while the first start waits: 4 MiB, a few milliseconds.
    pub first_segment_bytes: u64,
    /// Least size of the reserve for one snapshot. 4 MiB, and one and a half times the last snapshot when that is more.
    pub reserve_bytes: u64,
    /// Largest body of a batch.
    pub body_bytes: usize,
    /// Who prepares segments and deletes old ones.
    pub background: Background,
}

/// Who prepares segments ahead and deletes those no longer needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Background {
    /// A thread, so that appends do not wait for it.
    Thread,
    /// The caller, on the spot: slower, but the same steps in the same order every time, for simulated disks.
    Inline,
}

impl WalConfig {
    /// The defaults, in this directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_bytes: 64 << 20,
            first_segment_bytes: 4 << 20,
            reserve_bytes: 4 << 20,
            body_bytes: Limits::PORTABLE_BYTES,
            background: Background::Thread,
        }
    }

    /// Largest body that fits the limit and every segment.
    pub(crate) fn body_limit(&self) -> usize {
        let smallest = self.segment_bytes.min(self.first_segment_bytes) / sector::BYTES as u64;
        let sectors =
            usize::try_from(smallest.saturating_sub(1)).unwrap_or(usize::MAX).min(usize::from(u16::MAX - 1));
        self.body_bytes.min(sector::body_in(sectors))
    }
}
