//! The keeper: prepares the next segment and the reserve ahead of need, and deletes what is no longer needed.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::Background;
use crate::core::{Core, Provision};
use crate::disk::Disk;
use crate::identity::remove_if_there;
use crate::snapshot::RESERVE;

/// The next segment: zero-filled and synced.
pub(crate) const SPARE: &str = "spare";
const SPARE_TMP: &str = "spare.tmp";
/// Zeros are written and synced in pieces, so that an append does not wait behind the whole segment.
const PIECE_BYTES: usize = 256 << 10;
/// How long the keeper rests after each piece: a full segment then takes three seconds at a tenth of the disk's time.
const REST: Duration = Duration::from_millis(10);
/// No rest when more than this many times the room that is left in the present segment has still to be filled.
const HURRY_FACTOR: u64 = 4;
/// How long after a refusal the keeper tries again: soon enough for an operator who made room, and no busy loop.
const RETRY: Duration = Duration::from_secs(1);

/// Runs the keeper until it is dropped.
pub(crate) struct Keeper {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(core: Arc<Core>) -> io::Result<Self> {
        let thread = match core.config.background {
            Background::Inline => {
                work(&core);
                None
            }
            Background::Thread => {
                let core = Arc::clone(&core);
                Some(
                    std::thread::Builder::new()
                        .name("journal-keeper".to_owned())
                        .spawn(move || run(&core))?,
                )
            }
        };
        Ok(Self { core, thread })
    }

    /// Does, or lets do, what there is to do.
    pub(crate) fn wake(&self) {
        match self.core.config.background {
            Background::Inline => work(&self.core),
            Background::Thread => self.core.notify(),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.core.state().closed = true;
        self.core.notify();
        if let Some(thread) = self.thread.take() {
            // A keeper that panicked has said so; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn run(core: &Core) {
    loop {
        work(core);
        let mut state = core.state();
        loop {
            if state.closed {
                return;
            }
            let refused = |provision: &Provision| matches!(provision, Provision::Refused(_));
            let wanted = state.spare == Provision::Wanted || state.reserve == Provision::Wanted;
            if wanted || !state.doomed.is_empty() {
                break;
            }
            if refused(&state.spare) || refused(&state.reserve) {
                // A change may be our own doing or none at all; trying again costs little.
                drop(core.wait_for(state, RETRY));
                break;
            }
            state = core.wait(state);
        }
    }
}

/// One round of all there is to do.
fn work(core: &Core) {
    delete_doomed(core);
    let (spare, reserve) = {
        let state = core.state();
        (state.spare.clone(), state.reserve.clone())
    };
    if spare.is_missing() {
        let made = prepare_spare(core);
        core.state().spare = provision(made);
    }
    if reserve.is_missing() {
        let made = prepare_reserve(core);
        core.state().reserve = provision(made);
    }
    core.note_room(&core.state());
    core.notify();
}

fn provision(made: io::Result<()>) -> Provision {
    match made {
        Ok(()) => Provision::Ready,
        Err(error) => Provision::Refused(error.to_string()),
    }
}

/// Deletes what nothing refers to any more. What cannot be deleted now is found again at the next opening.
fn delete_doomed(core: &Core) {
    let doomed = std::mem::take(&mut core.state().doomed);
    for name in &doomed {
        let _ = remove_if_there(core.disk.as_ref(), name);
    }
    if !doomed.is_empty() {
        let _ = core.disk.sync();
    }
}

fn prepare_spare(core: &Core) -> io::Result<()> {
    let disk = core.disk.as_ref();
    // One is left from an earlier run: nothing is ever written into a file of this name, so it is still all zeros.
    let bytes = core.spare_bytes();
    if disk.open(SPARE).and_then(|file| file.size()).is_ok_and(|size| size >= bytes) {
        return Ok(());
    }
    zero_fill(disk, SPARE_TMP, bytes, &|left| pace(core, left))?;
    disk.rename(SPARE_TMP, SPARE)?;
    disk.sync()
}

/// Rests between two pieces while there is time, so that appends find the disk free; true when the journal is closed.
fn pace(core: &Core, left: u64) -> bool {
    let state = core.state();
    let hurried = state.spare_awaited || left / HURRY_FACTOR > core.active_left();
    if hurried || state.closed || core.config.background == Background::Inline {
        return state.closed;
    }
    core.wait_for(state, REST).closed
}

/// Makes a file of zeros, really written: syncing an append to it later changes no metadata, which is twice as fast as
/// syncing a file that grows. Before each piece `cancelled` is asked, with the bytes that are left, whether to stop.
/// Leaves nothing behind when it fails.
pub(crate) fn zero_fill(
    disk: &dyn Disk,
    name: &str,
    bytes: u64,
    cancelled: &dyn Fn(u64) -> bool,
) -> io::Result<()> {
    remove_if_there(disk, name)?;
    let file = disk.create(name)?;
    let filled = || -> io::Result<()> {
        file.allocate(bytes)?; // a full disk refuses here, at once, and not after most of the work
        let zeros = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < bytes {
            if cancelled(bytes - at) {
                return Err(io::Error::other("the journal is being closed"));
            }
            let piece = usize::try_from((bytes - at).min(PIECE_BYTES as u64)).expect("at most a piece");
            file.write_at(at, &zeros[..piece])?;
            file.sync()?;
            at += piece as u64;
        }
        Ok(())
    };
    filled().inspect_err(|_| {
        let _ = remove_if_there(disk, name);
    })
}

/// Takes room for one snapshot: the last one and half as much again.
fn prepare_reserve(core: &Core) -> io::Result<()> {
    let disk = core.disk.as_ref();
    let snapshot = core.state().snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes);
    let bytes = core.config.reserve_bytes.max(snapshot + snapshot / 2);
    if disk.open(RESERVE).and_then(|file| file.size()).is_ok_and(|size| size >= bytes) {
        return Ok(());
    }
    remove_if_there(disk, RESERVE)?;
    let file = disk.create(RESERVE)?;
    file.allocate(bytes).inspect_err(|_| {
        let _ = remove_if_there(disk, RESERVE);
    })
}
