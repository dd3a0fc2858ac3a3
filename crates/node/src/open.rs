//! From a journal to a node that can serve: claim, check the witness, replay, restore.

use std::path::Path;
use std::sync::Arc;

use leasehold_core::{LockTable, Settings};
use leasehold_journal::{
    Claim, Directory, Journal, Opened, ReadError, Reader, Sighting, Tail, Witness, Writer,
};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, FencingToken, Nonce};
use tokio::sync::mpsc;

use crate::desk::Desk;
use crate::keepers::{Keepers, SnapshotStart, load_witness, store_witness};
use crate::replay::Replay;
use crate::ring::Ring;
use crate::serving_time::ServingTime;
use crate::shared::{Bounds, Identity, Shared};
use crate::state::State;
use crate::{Clock, NodeConfig, Observer, StartError};

/// A node that can serve.
pub(crate) struct Ready {
    pub(crate) desk: Desk,
    pub(crate) writer: Box<dyn Writer>,
    pub(crate) keepers: Keepers,
}

/// Opens the journal and makes everything ready.
pub(crate) async fn open(
    config: &NodeConfig,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<Ready, StartError> {
    let nonce = Nonce::from_bytes(random());
    let mut opened = journal.open(claim(nonce)).await?;
    let directory = directory(&*journal, &config.data_dir)?;
    if let Some(witness) = load_witness(&config.data_dir)? {
        let sighting = Sighting::of(&mut opened, &witness, directory.clone()).await?;
        witness.check(&sighting)?;
    }
    let (replay, ring) = replay(config, &mut *opened.reader, opened.tail).await?;
    let witness = witness_of(&opened, directory, replay.state.last_token());
    store_witness(&config.data_dir, &witness)?;

    let limits = opened.writer.limits();
    let snapshots = SnapshotStart {
        journal: Arc::clone(&journal),
        writer: opened.snapshots,
        chunk_bytes: limits.chunk_bytes,
        bytes: replay.bytes,
        snapshot_bytes: replay.snapshot_bytes,
    };
    let keepers = Keepers::start(config, witness, snapshots, &clock, &observer)?;

    let (queue, inbox) = mpsc::unbounded_channel();
    let identity = Identity {
        cluster: opened.cluster,
        node: Arc::clone(&config.name),
        epoch: opened.epoch,
        journal: journal.kind(),
        durability: opened.durability,
    };
    let bounds = Bounds {
        queue: config.queue,
        reserve: config.queue_reserve.min(config.queue),
        waiters: config.waiters,
    };
    let time = ServingTime::starting(clock.read());
    let shared = Arc::new(Shared::new(identity, bounds, clock, Arc::clone(&observer), Arc::new(ring), queue));
    let settings = Settings {
        durability: opened.durability,
        correctness_despite_loss: config.correctness_despite_loss,
    };
    let table = LockTable::restore(replay.state, settings, time.now());
    observer.lease_rearmed(table.counts().leases);
    let state = State::new(table, opened.epoch, nonce, replay.tail, limits);
    let mut desk = Desk::new(state, shared, inbox, time, config.queue);
    desk.publish(true);
    Ok(Ready { desk, writer: opened.writer, keepers })
}

/// An ordinary claim: whoever has the journal now is fenced.
pub(crate) fn claim(nonce: Nonce) -> Claim {
    Claim {
        nonce,
        new_cluster: ClusterId::from_bytes(random()),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

/// What this node has now seen of the journal.
pub(crate) fn witness_of(opened: &Opened, directory: Option<Directory>, last_token: u64) -> Witness {
    Witness {
        cluster: opened.cluster,
        tail: opened.tail,
        epoch: opened.epoch,
        token: FencingToken::new(last_token).ok(),
        directory,
    }
}

/// With the embedded journal the witness also pins the directory itself, so that a copied-back one is noticed (J9). With
/// a remote engine the directory may move: what counts is the engine.
pub(crate) fn directory(journal: &dyn Journal, data_dir: &Path) -> Result<Option<Directory>, StartError> {
    if journal.kind() != "embedded" {
        return Ok(None);
    }
    let directory = Directory::of(data_dir);
    directory.map(Some).map_err(|error| StartError::Witness(format!("{}: {error}", data_dir.display())))
}

/// Replays everything up to `tail`, and keeps the newest events.
async fn replay(
    config: &NodeConfig,
    reader: &mut dyn Reader,
    tail: Tail,
) -> Result<(Replay, Ring), StartError> {
    let mut replay = Replay::from_snapshot(reader).await?;
    let ring = Ring::new(config.ring_events, config.ring_bytes, replay.snapshot_slot);
    while replay.tail.slot < tail.slot {
        let slots = replay.next_slots(reader).await?;
        if slots.is_empty() {
            break;
        }
        for slot in &slots {
            let mut events = Vec::new();
            replay.apply(slot, &mut events)?;
            ring.push_slot(slot.batch.slot, events);
        }
    }
    if replay.tail == tail { Ok((replay, ring)) } else { Err(not_the_tail(replay.tail, tail).into()) }
}

fn not_the_tail(found: Tail, expected: Tail) -> ReadError {
    let detail = format!(
        "the slots end at {} {:?}, the head says {} {:?}",
        found.slot, found.hash, expected.slot, expected.hash
    );
    ReadError::Corrupt { place: format!("slot {}", found.slot), detail }
}
