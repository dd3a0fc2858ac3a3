//! What the writer, the readers, the snapshot writer and the keeper of one open journal share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use leasehold_journal::{Head, Room, Tail};
use leasehold_types::{ClusterId, Slot};

use crate::config::WalConfig;
use crate::disk::Disk;
use crate::identity::Phase;
use crate::segment::{self, Header};
use crate::snapshot::SnapshotFile;

pub(crate) struct Core {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) config: WalConfig,
    pub(crate) cluster: ClusterId,
    state: Mutex<State>,
    /// Told whenever the state changes in a way that somebody may wait for.
    changed: Condvar,
    /// Whether only the reserve is left: read before every decision, so it is not behind the lock.
    reserve_only: AtomicBool,
    /// Size of the segment that is appended to, and what of it is free: how soon the next one is needed.
    active_bytes: AtomicU64,
    active_left: AtomicU64,
}

pub(crate) struct State {
    /// Epoch, nonce, beats, and the last slot that is durable. Nobody reads past it.
    pub(crate) head: Head,
    /// Segments in use, oldest first.
    pub(crate) segments: Vec<Header>,
    /// The low-water mark.
    pub(crate) keep_from: Slot,
    pub(crate) snapshot: Option<Arc<SnapshotFile>>,
    pub(crate) spare: Provision,
    /// The writer stands still until there is a spare.
    pub(crate) spare_awaited: bool,
    pub(crate) reserve: Provision,
    /// Files to be deleted; nothing refers to them any more.
    pub(crate) doomed: Vec<String>,
    /// How far the journal has come; a recovery ends with the first batch that is committed.
    pub(crate) phase: Phase,
    /// Why nothing can be appended any more.
    pub(crate) failed: Option<String>,
    /// The journal was closed: the keeper ends, and readers look at the directory themselves.
    pub(crate) closed: bool,
}

/// Something kept ready ahead of need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Provision {
    /// To be made.
    Wanted,
    /// There.
    Ready,
    /// Being taken into use: its file is still there under its old name, and must not be counted as the next one.
    Taken,
    /// Could not be made, and why; tried again later.
    Refused(String),
}

impl Provision {
    /// Whether the keeper has to see to it.
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Wanted | Self::Refused(_) => true,
            Self::Ready | Self::Taken => false,
        }
    }
}

impl Core {
    pub(crate) fn new(disk: Arc<dyn Disk>, config: WalConfig, cluster: ClusterId, state: State) -> Self {
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self {
            disk,
            config,
            cluster,
            state,
            changed,
            reserve_only: AtomicBool::new(false),
            active_bytes: AtomicU64::new(0),
            active_left: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the state")
    }

    /// Waits for a change of the state.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).expect("no code panics while it holds the state")
    }

    /// Waits for a change of the state, but not longer than this.
    pub(crate) fn wait_for<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: std::time::Duration,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).expect("no code panics while it holds the state").0
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn room(&self) -> Room {
        if self.reserve_only.load(Ordering::Relaxed) { Room::Reserve } else { Room::Plenty }
    }

    /// Tells how large the segment in use is and what of it is free.
    pub(crate) fn note_active(&self, bytes: u64, left: u64) {
        self.active_bytes.store(bytes, Ordering::Relaxed);
        self.active_left.store(left, Ordering::Relaxed);
    }

    /// How large the next segment should be: twice the present one, up to the full size. A young journal is filled
    /// with load faster than a full segment can be prepared beside it.
    pub(crate) fn spare_bytes(&self) -> u64 {
        let doubled = self.active_bytes.load(Ordering::Relaxed).max(self.config.first_segment_bytes) * 2;
        doubled.min(self.config.segment_bytes)
    }

    /// What is free of the segment in use.
    pub(crate) fn active_left(&self) -> u64 {
        self.active_left.load(Ordering::Relaxed)
    }

    /// Works out anew whether only the reserve is left.
    pub(crate) fn note_room(&self, state: &State) {
        let refused = |provision: &Provision| matches!(provision, Provision::Refused(_));
        self.reserve_only.store(refused(&state.spare) || refused(&state.reserve), Ordering::Relaxed);
    }

    /// Records that a step failed after which nothing can be trusted.
    pub(crate) fn fail(&self, reason: &str) {
        let mut state = self.state();
        state.failed.get_or_insert_with(|| reason.to_owned());
        self.notify();
    }
}

impl State {
    pub(crate) fn tail(&self) -> Tail {
        self.head.tail
    }

    /// Raises the low-water mark and dooms the segments that lie wholly below it. The last one always stays: the tail
    /// stands in it.
    pub(crate) fn raise_low_water(&mut self, keep_from: Slot) {
        self.keep_from = self.keep_from.max(keep_from);
        let below = |next: &Header| next.after.slot < self.keep_from;
        let count = self.segments.iter().skip(1).take_while(|next| below(next)).count();
        self.doomed.extend(self.segments.drain(..count).map(|header| segment::name(header.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::Provision;

    #[test]
    fn a_segment_that_is_being_taken_is_not_counted_as_the_next_one() {
        assert!(!Provision::Taken.is_missing(), "its file is there, and would be found to be the spare");
        assert!(!Provision::Ready.is_missing());
        assert!(Provision::Wanted.is_missing() && Provision::Refused("disk full".into()).is_missing());
    }
}
