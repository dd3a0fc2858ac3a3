//! The threads beside the loop: the witness and the snapshots. The loop only ever tells them; it never waits for them.

mod lock;
mod snapshotter;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use leasehold_journal::{Journal, SnapshotWriter, Tail, Witness};

use crate::config::WITNESS_EVERY;
use crate::desk::Desk;
use crate::{Clock, NodeConfig, Observer, StartError};
use snapshotter::Snapshotter;
use witness::WitnessKeeper;

pub(crate) use lock::DataLock;
pub(crate) use witness::{load_witness, store_witness};

/// Both of them.
pub(crate) struct Keepers {
    witness: WitnessKeeper,
    snapshots: Snapshotter,
    next_witness: Duration,
}

/// What the snapshotter begins with.
pub(crate) struct SnapshotStart {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) writer: Box<dyn SnapshotWriter>,
    pub(crate) chunk_bytes: usize,
    /// Bytes of facts after the current snapshot.
    pub(crate) bytes: u64,
    /// The size of the current snapshot.
    pub(crate) snapshot_bytes: u64,
    /// Whether the last lives of the node, which is alone on its journal, were too short for a snapshot. Where others may
    /// take over nothing waits for one: they would.
    pub(crate) is_in_a_crash_loop: bool,
}

impl Keepers {
    pub(crate) fn start(
        config: &NodeConfig,
        witness: Witness,
        snapshots: SnapshotStart,
        clock: &Arc<dyn Clock>,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        Ok(Self {
            witness: WitnessKeeper::start(&config.data_dir, witness, observer)?,
            snapshots: Snapshotter::start(config, snapshots, clock, observer)?,
            next_witness: clock.monotonic() + WITNESS_EVERY,
        })
    }

    /// Tells them how far the journal is durable.
    pub(crate) fn tell(&mut self, desk: &mut Desk) {
        let now = desk.monotonic();
        if now >= self.next_witness {
            self.next_witness = now + WITNESS_EVERY;
            self.witness.tell(desk.state.tail(), desk.state.durable_counts().last_token);
        }
    }

    /// So many bytes more are durable.
    pub(crate) fn committed(&mut self, bytes: usize) {
        self.snapshots.committed(bytes);
    }

    /// Ends them after a last word, and waits for it: afterwards nothing of this node touches the journal.
    pub(crate) fn finish(self, tail: Tail, token: u64) {
        let Self { witness, snapshots, .. } = self;
        snapshots.finish();
        witness.finish(tail, token);
    }

    /// Ends them because another node has the journal: snapshots are fenced, and the witness is about to be written by
    /// somebody else, so its last word is waited for.
    pub(crate) fn step_down(self) {
        self.snapshots.abandon();
        self.witness.end();
    }

    /// Ends them without waiting: the journal is not ours any more, or does not answer.
    pub(crate) fn abandon(self) {
        self.snapshots.abandon();
    }
}
