//! From a journal to a node that can serve: claim, check the witness, replay, restore.

use std::path::Path;
use std::sync::Arc;

use leasehold_core::{LockTable, Settings};
use leasehold_journal::{Claim, Directory, Journal, Opened, Sighting, Witness, Writer};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, FencingToken, Nonce};
use tokio::sync::mpsc;

use crate::desk::Desk;
use crate::keepers::{Keepers, SnapshotStart, load_witness, store_witness};
use crate::node::Node;
use crate::serving_time::ServingTime;
use crate::shared::{Identity, Shared};
use crate::state::State;
use crate::warm::Warm;
use crate::{NodeConfig, SharedJournal, StartError};

/// A node that can serve.
pub(crate) struct Ready {
    pub(crate) desk: Desk,
    pub(crate) writer: Box<dyn Writer>,
    pub(crate) keepers: Keepers,
}

/// Claims the journal, whoever has it, and makes everything ready.
pub(crate) async fn open(node: &Node) -> Result<Ready, StartError> {
    let nonce = Nonce::from_bytes(random());
    let opened = node.journal.open(claim(nonce)).await?;
    make_ready(node, opened, nonce, None).await
}

/// Makes everything ready on a journal that was claimed with `nonce`, beginning with what a standby has replayed.
pub(crate) async fn make_ready(
    node: &Node,
    mut opened: Opened,
    nonce: Nonce,
    warm: Option<Warm>,
) -> Result<Ready, StartError> {
    let Node { config, journal, clock, observer, .. } = node;
    let directory = directory(&**journal, &config.data_dir)?;
    if let Some(witness) = load_witness(&config.data_dir)? {
        let sighting = Sighting::of(&mut opened, &witness, directory.clone()).await?;
        witness.check(&sighting)?;
    }
    let Warm { replay, ring, .. } = replay(config, &mut opened, warm).await?;
    let witness = witness_of(&opened, directory, replay.state.last_token());
    store_witness(&config.data_dir, &witness)?;

    let limits = opened.writer.limits();
    let snapshots = SnapshotStart {
        journal: Arc::clone(journal),
        writer: opened.snapshots,
        chunk_bytes: limits.chunk_bytes,
        bytes: replay.bytes,
        snapshot_bytes: replay.snapshot_bytes,
    };
    let keepers = Keepers::start(config, witness, snapshots, clock, observer)?;

    let (queue, inbox) = mpsc::unbounded_channel();
    let identity = Identity {
        cluster: opened.cluster,
        node: Arc::clone(&config.name),
        journal: journal.kind(),
        durability: opened.durability,
    };
    let time = ServingTime::starting(clock.read());
    let (clock, seen_by) = (Arc::clone(clock), Arc::clone(observer));
    let shared =
        Arc::new(Shared::new(identity, opened.epoch, node.bounds(), clock, seen_by, Arc::new(ring), queue));
    let settings =
        Settings { durability: opened.durability, correctness_despite_loss: config.correctness_despite_loss };
    let table = LockTable::restore(replay.state, settings, time.now());
    observer.took_over(opened.epoch);
    observer.lease_rearmed(table.counts().leases);
    let mut state = State::new(table, opened.epoch, nonce, replay.tail, limits);
    if let Some(SharedJournal { url, .. }) = &config.shared {
        state.took_over(&config.name, url);
    }
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

/// Replays everything up to the tail.
async fn replay(config: &NodeConfig, opened: &mut Opened, warm: Option<Warm>) -> Result<Warm, StartError> {
    let Opened { cluster, tail, ref mut reader, .. } = *opened;
    let mut warm = match warm {
        Some(warm) => warm,
        None => Warm::load(config, &mut **reader).await?,
    };
    warm.must_not_be_ahead(cluster, tail)?;
    warm.follow(cluster, tail, &mut **reader).await?;
    Ok(warm)
}
