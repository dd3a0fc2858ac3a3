//! From a journal to a node that can serve: claim, check the witness, replay, restore.

use std::path::Path;
use std::sync::Arc;

use leasehold_core::{ClusterSecret, Journaled, LockTable, Settings};
use leasehold_journal::{Claim, Directory, Journal, OpenError, Opened, Sighting, Witness, Writer};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, FencingToken, Generation, Nonce, Slot};
use tokio::sync::mpsc;

use crate::desk::Desk;
use crate::keepers::{Keepers, SnapshotStart, load_witness, store_witness};
use crate::node::Node;
use crate::serving_time::ServingTime;
use crate::shared::{Identity, Shared};
use crate::state::State;
use crate::turns::Turns;
use crate::warm::Warm;
use crate::{NodeConfig, SharedJournal, StartError, awake};

/// A node that has lived so often since the last snapshot ends its lives before it has made the next: a crash loop.
const CRASH_LOOP: usize = 4;

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
    let compared = compare(&config.data_dir, &mut opened, directory.clone()).await?;
    let warm = replay(config, &mut opened, warm).await?;
    if let Some(error) = compared.given_up_by(warm.state())? {
        observer.trouble("a recovery has given up what this node had seen", &error.to_string());
    }
    let Warm { replay, ring, .. } = warm;
    let seen = Seen { token: replay.state.last_token(), generation: replay.state.generation(), nonce };
    let witness = witness_of(&opened, directory, seen);
    store_witness(&config.data_dir, &witness)?;

    let limits = opened.writer.limits();
    let snapshots = SnapshotStart {
        journal: Arc::clone(journal),
        writer: opened.snapshots,
        chunk_bytes: limits.chunk_bytes,
        bytes: replay.bytes,
        snapshot_bytes: replay.snapshot_bytes,
        is_in_a_crash_loop: config.shared.is_none() && replay.lives >= CRASH_LOOP,
    };
    let keepers = Keepers::start(config, witness, snapshots, clock, observer)?;

    let (queue, inbox) = mpsc::unbounded_channel();
    let identity = Identity {
        cluster: opened.cluster,
        node: Arc::clone(&config.name),
        journal: journal.kind(),
        durability: opened.durability,
        known_format: config.known_format,
    };
    let time = ServingTime::starting(clock.read());
    let (clock, seen_by) = (Arc::clone(clock), Arc::clone(observer));
    let shared =
        Arc::new(Shared::new(identity, opened.epoch, node.bounds(), clock, seen_by, Arc::new(ring), queue));
    let settings =
        Settings { durability: opened.durability, correctness_despite_loss: config.correctness_despite_loss };
    let mut table = LockTable::restore(replay.state, settings, time.now());
    table.set_quotas(config.quotas.clone());
    observer.took_over(opened.epoch);
    observer.lease_rearmed(table.counts().leases);
    let mut state = State::new(table, opened.epoch, nonce, replay.tail, limits);
    if replay.tail.slot == Slot(0) {
        state.found(config.known_format, shared.clock.read().wall);
    }
    if let Some(SharedJournal { url, .. }) = &config.shared {
        state.took_over(&config.name, url);
        state.make_secret(new_secret());
    }
    shared.set_format(state.table().journaled());
    let turns = Turns::new(!limits.confirm_is_free);
    let mut desk = Desk::new(state, shared, inbox, time, config.queue, turns, awake::over(&limits));
    desk.publish();
    Ok(Ready { desk, writer: opened.writer, keepers })
}

/// Compares the journal with what this node has seen of it.
pub(crate) async fn compare(
    data_dir: &Path,
    opened: &mut Opened,
    directory: Option<Directory>,
) -> Result<Compared, StartError> {
    let Some(witness) = load_witness(data_dir)? else { return Ok(Compared(None)) };
    let sighting = Sighting::of(opened, &witness, directory).await?;
    let fits = witness.check(&sighting);
    Ok(Compared(Some((witness, fits))))
}

/// What this node has seen of a journal, if anything, and whether the journal still has it, as far as can be told before it was
/// replayed.
#[must_use]
pub(crate) struct Compared(Option<(Witness, Result<(), OpenError>)>);

impl Compared {
    /// Only a replay tells the rest: whether the tokens are there, and whether what does not fit was given up by a recovery.
    /// Gives what did not fit, and was.
    ///
    /// # Errors
    /// [`OpenError::Regressed`]: it was not given up.
    pub(crate) fn given_up_by(self, state: &Journaled) -> Result<Option<OpenError>, OpenError> {
        let Some((witness, fits)) = self.0 else { return Ok(None) };
        match fits.and_then(|()| witness.check_token(state.last_token())) {
            Ok(()) => Ok(None),
            Err(error) if witness.is_given_up_by(state.generation(), state.recovered_above()) => {
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }
}

/// What becomes the nodes' secret if they have none yet.
pub(crate) fn new_secret() -> ClusterSecret {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&random());
    bytes[16..].copy_from_slice(&random());
    ClusterSecret::from_bytes(bytes)
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

/// What a node has seen in the journal that it has just claimed.
pub(crate) struct Seen {
    pub(crate) token: u64,
    pub(crate) generation: Generation,
    pub(crate) nonce: Nonce,
}

/// What this node has now seen of the journal.
pub(crate) fn witness_of(opened: &Opened, directory: Option<Directory>, seen: Seen) -> Witness {
    Witness {
        cluster: opened.cluster,
        tail: opened.tail,
        epoch: opened.epoch,
        token: FencingToken::new(seen.token).ok(),
        directory,
        generation: Some(seen.generation),
        claimed: Some(seen.nonce),
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
    match warm.must_not_be_ahead(cluster, tail) {
        Ok(()) => warm.follow_recovered(cluster, tail, &mut **reader).await?,
        Err(regressed) => warm.follow_anew(cluster, tail, &mut **reader, regressed).await?,
    }
    Ok(warm)
}
