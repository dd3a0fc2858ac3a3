//! Opening: lock, look, check, mend only when told to, claim.

use std::io;
use std::sync::Arc;

use leasehold_journal::{Chained, Claim, Head, OpenError, Tail};
use leasehold_types::{ClusterId, Durability, Epoch, Nonce, Slot};

use crate::config::WalConfig;
use crate::core::{Core, Provision, State};
use crate::disk::{Disk, LockError, Suitability};
use crate::identity::{IDENTITY, Identity, Phase, remove_if_there};
use crate::keeper::zero_fill;
use crate::log::{self, Log};
use crate::mend;
use crate::sector;
use crate::segment;
use crate::snapshot::{self, SnapshotFile};
use crate::writer::Active;

const FOUNDING_TMP: &str = "founding.tmp";

/// A directory that was locked, checked and claimed.
pub(crate) struct Ready {
    pub(crate) lock: Box<dyn Send + Sync>,
    pub(crate) core: Arc<Core>,
    pub(crate) active: Active,
    pub(crate) last: Option<Chained>,
    pub(crate) durability: Durability,
    pub(crate) loss: Option<String>,
}

/// Makes the directory, locks it, and sees whether it is fit for a journal.
pub(crate) fn lock(disk: &dyn Disk) -> Result<(Box<dyn Send + Sync>, Durability), OpenError> {
    let guard = disk.lock().map_err(|error| match error {
        LockError::Held(Some(pid)) => OpenError::InUse(format!("process {pid} has {} open", disk.path(""))),
        LockError::Held(None) => OpenError::InUse(format!("another process has {} open", disk.path(""))),
        // Nobody can use it like this, now or later.
        LockError::Io(error) if is_not_ours(&error) => {
            OpenError::Unsuitable(format!("{}: {error}", disk.path("")))
        }
        LockError::Io(error) => unavailable(disk, error),
    })?;
    let durability = match disk.suitability().map_err(|error| unavailable(disk, error))? {
        Suitability::Durable => Durability::Durable,
        Suitability::Lossy(_) => Durability::Lossy,
        Suitability::Network(kind) => {
            let place = disk.path("");
            let why = "locks and fsync may not hold on a network file system; use a local disk";
            return Err(OpenError::Unsuitable(format!("{place} is on {kind}: {why}")));
        }
    };
    Ok((guard, durability))
}

/// Whether a directory cannot be made or written here by this user.
fn is_not_ours(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
}

fn unavailable(disk: &dyn Disk, error: io::Error) -> OpenError {
    OpenError::Unavailable(format!("{}: {error}", disk.path("")))
}

/// Whether the directory holds anything of a journal.
pub(crate) fn holds_journal(disk: &dyn Disk) -> io::Result<bool> {
    Ok(disk.names()?.iter().any(|name| is_of_journal(name)))
}

/// Whether a file of this name holds acknowledged batches or state.
pub(crate) fn is_of_journal(name: &str) -> bool {
    segment::number(name).is_some() || name == snapshot::SNAPSHOT
}

/// Opens the journal in the directory, founding it when there is none.
pub(crate) fn open(disk: Arc<dyn Disk>, config: &WalConfig, claim: &Claim) -> Result<Ready, OpenError> {
    let (lock, durability) = lock(disk.as_ref())?;
    let mut losses = Vec::new();
    let before = identify(disk.as_ref(), claim, &mut losses)?;
    let current = before.map_or(Epoch(0), |identity| identity.epoch);
    if claim.expected_epoch.is_some_and(|expected| expected != current) {
        return Err(OpenError::LostDuel(current));
    }
    let broken = |error| unavailable(disk.as_ref(), error);
    let before = match before {
        Some(identity) if identity.phase != Phase::Founding => identity,
        _ => found(disk.as_ref(), config, claim).map_err(broken)?,
    };
    let (snapshot, log) = read_whole(&disk, config, claim, &before, &mut losses)?;
    let active = make_ready(disk.as_ref(), config, before.cluster, &log).map_err(broken)?;

    let epoch = before.epoch.max(Epoch(log.epoch)).max(claim.epoch_floor).next();
    let phase = if losses.is_empty() { Phase::Ready } else { Phase::Recovering };
    let identity = Identity { cluster: before.cluster, phase, epoch, nonce: claim.nonce };
    identity.store(disk.as_ref()).map_err(broken)?;

    let state = state(&identity, snapshot, &log, &active);
    let core = Arc::new(Core::new(disk, config.clone(), identity.cluster, state));
    core.note_active(active.bytes(), active.bytes_left());
    let last = log.last.map(|(committed, _)| committed);
    let loss = (!losses.is_empty()).then(|| losses.join("; "));
    Ok(Ready { lock, core, active, last, durability, loss })
}

/// Whose directory it is; `None` if nobody's.
fn identify(disk: &dyn Disk, claim: &Claim, losses: &mut Vec<String>) -> Result<Option<Identity>, OpenError> {
    let broken = |error| unavailable(disk, error);
    let lost = |why: String, losses: &mut Vec<String>| {
        let cluster = mend::salvage_cluster(disk)?;
        losses.push(why);
        let nonce = Nonce::from_bytes([0; 16]);
        Ok(Some(Identity { cluster, phase: Phase::Ready, epoch: Epoch(0), nonce }))
    };
    match Identity::load(disk) {
        Ok(None) if !holds_journal(disk).map_err(broken)? => Ok(None),
        Ok(None) if claim.accept_loss => lost("the identity file was missing".to_owned(), losses),
        Ok(None) => {
            let detail = "the file is missing although there are segments or a snapshot".to_owned();
            Err(OpenError::Corrupt { place: disk.path(IDENTITY), detail })
        }
        Ok(Some((identity, copied))) => {
            let what = match (identity.phase, copied) {
                (Phase::Founding, _) | (Phase::Ready, None) => return Ok(Some(identity)),
                (Phase::Importing, _) => {
                    let detail = "restoring into this directory was not finished; restore again".to_owned();
                    return Err(OpenError::Corrupt { place: disk.path(IDENTITY), detail });
                }
                (Phase::Recovering, _) => "a restore or recovery was not finished".to_owned(),
                (Phase::Ready, Some(copied)) => copied,
            };
            if !claim.accept_loss {
                return Err(OpenError::Regressed(format!("{what}; {COPIED_ADVICE}")));
            }
            losses.push(format!("{what}: writes newer than this copy may be lost"));
            Ok(Some(identity))
        }
        Err(OpenError::Corrupt { place, detail }) if claim.accept_loss => {
            lost(format!("the identity file was damaged ({place}: {detail})"), losses)
        }
        Err(error) => Err(error),
    }
}

const COPIED_ADVICE: &str = "tokens may have been given out that this journal does not know, so nothing is served. If a newer original \
     still exists, start on that one; otherwise run `leasehold recover`, which raises the token floor above everything \
     seen";

/// Makes a new journal. Until the identity says `ready`, a crash only means that it is made again.
fn found(disk: &dyn Disk, config: &WalConfig, claim: &Claim) -> io::Result<Identity> {
    let cluster = claim.new_cluster;
    let founding = Identity { cluster, phase: Phase::Founding, epoch: Epoch(0), nonce: claim.nonce };
    founding.store(disk)?;
    for name in disk.names()?.iter().filter(|name| segment::number(name).is_some()) {
        disk.remove(name)?;
    }
    zero_fill(disk, FOUNDING_TMP, config.first_segment_bytes, &|_| false)?;
    let header = mend::new_header(config, cluster, 1, Tail::default());
    Active::begin(disk, FOUNDING_TMP, header)?;
    Ok(founding)
}

/// Reads snapshot and log, and mends them if the claim accepts loss.
fn read_whole(
    disk: &Arc<dyn Disk>,
    config: &WalConfig,
    claim: &Claim,
    before: &Identity,
    losses: &mut Vec<String>,
) -> Result<(Option<SnapshotFile>, Log), OpenError> {
    let cluster = before.cluster;
    // Said before anything is changed: a mended log looks whole, and must not be served until it is recovered.
    let begin_mending = || {
        let recovering = Identity { phase: Phase::Recovering, ..*before };
        recovering.store(disk.as_ref()).map_err(|error| unavailable(disk.as_ref(), error))
    };
    let load = || {
        let found = SnapshotFile::load(disk.as_ref())?;
        let detail = "the snapshot belongs to another cluster".to_owned();
        match found {
            Some((_, other)) if other != cluster => {
                Err(OpenError::Corrupt { place: disk.path(snapshot::SNAPSHOT), detail })
            }
            found => Ok(found.map(|(snapshot, _)| snapshot)),
        }
    };
    let snapshot = match load() {
        Err(why @ OpenError::Corrupt { .. }) if claim.accept_loss => {
            begin_mending()?;
            losses.push(mend::without_snapshot(disk.as_ref(), cluster, &why)?);
            None
        }
        other => other?,
    };
    let log = log::read(disk.as_ref(), cluster, snapshot.as_ref())?;
    let Some(damage) = &log.damage else { return Ok((snapshot, log)) };
    if !claim.accept_loss {
        return Err(damage.error(disk.as_ref()));
    }
    begin_mending()?;
    let mended = mend::log(disk, config, cluster, snapshot.as_ref(), &log, damage);
    losses.push(mended.map_err(|error| unavailable(disk.as_ref(), error))?);
    let snapshot = load()?;
    let log = log::read(disk.as_ref(), cluster, snapshot.as_ref())?;
    match &log.damage {
        Some(damage) => Err(damage.error(disk.as_ref())),
        None => Ok((snapshot, log)),
    }
}

/// Makes the end of the log fit for appending, and certain. The process before us may have died between writing and
/// syncing, or after a sync that failed: what we found may be in memory only. So the end is written again, with the
/// same bytes, and synced before anything is answered from it.
fn make_ready(disk: &dyn Disk, config: &WalConfig, cluster: ClusterId, log: &Log) -> io::Result<Active> {
    for tmp in [snapshot::TMP, FOUNDING_TMP] {
        remove_if_there(disk, tmp)?;
    }
    if let Some(number) = log.blank {
        let file = disk.open_for_appends(&segment::name(number))?;
        return Active::head(file, mend::new_header(config, cluster, number, log.tail));
    }
    let header = *log.segments.last().expect("a log without damage has a segment");
    let file = disk.open_for_appends(&segment::name(header.number))?;
    file.write_at(0, &header.encode())?;
    if let Some((committed, Some(first))) = &log.last {
        let mut bytes = Vec::new();
        sector::encode(&mut bytes, header.salt(), *first, committed);
        file.write_at(first * sector::BYTES as u64, &bytes)?;
    }
    if log.torn_end > log.next {
        let sectors = usize::try_from(log.torn_end - log.next).expect("a batch");
        file.write_at(log.next * sector::BYTES as u64, &vec![0; sectors * sector::BYTES])?;
    }
    file.sync()?;
    Ok(Active { file, header, next: log.next })
}

fn state(identity: &Identity, snapshot: Option<SnapshotFile>, log: &Log, active: &Active) -> State {
    let Identity { cluster, epoch, nonce, .. } = *identity;
    let mut segments = log.segments.clone();
    if log.blank.is_some() {
        segments.push(active.header);
    }
    State {
        head: Head { cluster, epoch, nonce, tail: log.tail, beat: 0 },
        segments,
        keep_from: snapshot.as_ref().map_or(Slot(1), |snapshot| snapshot.keep_from),
        snapshot: snapshot.map(Arc::new),
        spare: Provision::Wanted,
        spare_awaited: false,
        reserve: Provision::Wanted,
        doomed: log.leftovers.clone(),
        phase: identity.phase,
        failed: None,
        closed: false,
    }
}
