//! What an operator does to a journal that no node serves.

use std::path::Path;

use leasehold_core::{Command, LockTable, Operator, Recover, Refusal, Reply, Settings, Ticket, codec};
use leasehold_journal::{Claim, Journal, OpenError, Opened};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, Generation, Nonce, Now, Slot, TenantName, Time, limits};

use crate::keepers::{DataLock, load_witness, store_witness};
use crate::open::{Seen, claim, compare, directory, witness_of};
use crate::replay::Replay;
use crate::state::{Delivery, Next, State, Work};
use crate::{Call, Clock, StartError};

/// What `recover` did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The journal.
    pub cluster: ClusterId,
    /// The new generation.
    pub generation: Generation,
    /// Every later token is above this.
    pub token_floor: u64,
    /// The epoch that it was done in.
    pub epoch: Epoch,
    /// What was lost, in words, as far as can be told.
    pub loss: Option<String>,
}

/// Whether a backup is in the audit log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupNote {
    /// It is.
    Noted {
        /// The entry that says so.
        audit_seq: u64,
    },
    /// It cannot be: the journal has an older format (N10).
    FormatTooOld {
        /// Which.
        format: u8,
    },
}

/// A data directory that no node uses as long as this lives.
#[derive(Debug)]
pub struct Unserved<'a> {
    data_dir: &'a Path,
    _lock: Option<DataLock>,
}

impl<'a> Unserved<'a> {
    /// Keeps nodes of these journals off the data directory. The embedded journal has a lock of its own.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if a node has the directory; [`OpenError::Unsuitable`] if it cannot be locked.
    pub fn take(data_dir: &'a Path, journals: &[&dyn Journal]) -> Result<Self, OpenError> {
        let are_embedded = journals.iter().all(|journal| journal.kind() == "embedded");
        let lock = if are_embedded { None } else { Some(DataLock::take(data_dir)?) };
        Ok(Self { data_dir, _lock: lock })
    }
}

/// Accepts what is left of a damaged, regressed or restored journal: raises the generation, the epoch and the token
/// floor above everything that journal and witness know (by 2^40, or to `token_floor` if that is more), and writes the
/// witness anew. Also the last step of a restore.
///
/// # Errors
/// See [`StartError`]; nothing was recovered, and asking again is safe.
pub async fn recover(
    journal: &dyn Journal,
    data_dir: &Path,
    operator: Operator,
    token_floor: Option<u64>,
    clock: &dyn Clock,
) -> Result<Recovered, StartError> {
    let unserved = Unserved::take(data_dir, &[journal])?;
    recover_unserved(journal, &unserved, operator, token_floor, clock).await
}

/// As [`recover`], for whoever needs the data directory for more than this: what fills a journal must know that it can be
/// recovered afterwards.
///
/// # Errors
/// As [`recover`].
pub async fn recover_unserved(
    journal: &dyn Journal,
    unserved: &Unserved<'_>,
    operator: Operator,
    token_floor: Option<u64>,
    clock: &dyn Clock,
) -> Result<Recovered, StartError> {
    let data_dir = unserved.data_dir;
    // A witness that cannot be read knows nothing; recovering is what an operator does about it.
    let witness = load_witness(data_dir).unwrap_or(None);
    let (seen_epoch, seen_token) =
        witness.map_or((0, 0), |seen| (seen.epoch.0, seen.token.map_or(0, |token| token.get())));
    let (loss, known_epoch) = accept_loss(journal).await?;
    let epoch_floor = Epoch(known_epoch.0.max(seen_epoch) + limits::RECOVERY_STEP);
    let nonce = Nonce::from_bytes(random());
    let mut opened = journal.open(Claim { epoch_floor, accept_loss: true, ..claim(nonce) }).await?;

    let replay = replay_all(&mut opened).await?;
    let above = replay.state.last_token().max(seen_token) + limits::RECOVERY_STEP;
    let token_floor = token_floor.map_or(above, |asked| asked.max(above));
    let command = Command::Recover(Recover { token_floor, operator });
    let (generation, token_floor) = recovered(carry_out(command, replay, &mut opened, nonce, clock).await?)?;

    let directory = directory(journal, data_dir)?;
    let seen = Seen { token: token_floor, generation, nonce };
    store_witness(data_dir, &witness_of(&opened, directory, seen))?;
    Ok(Recovered { cluster: opened.cluster, generation, token_floor, epoch: opened.epoch, loss })
}

/// Notes in the audit log of a journal that no node serves that a backup is about to be made, if its format can hold that.
/// The journal is claimed as a node claims it, so that whoever does serve it on a remote engine is fenced, and checked
/// against the witness, which is then written anew: the next node of this data directory finds what it expects.
///
/// # Errors
/// See [`StartError`]. A journal that regressed is not written to. Asking again is safe; an outcome that stayed unknown may
/// leave a second entry.
pub async fn note_backup(
    journal: &dyn Journal,
    data_dir: &Path,
    operator: Operator,
    clock: &dyn Clock,
) -> Result<BackupNote, StartError> {
    let _unserved = Unserved::take(data_dir, &[journal])?;
    let nonce = Nonce::from_bytes(random());
    let mut opened = journal.open(claim(nonce)).await?;
    let directory = directory(journal, data_dir)?;
    let compared = compare(data_dir, &mut opened, directory.clone()).await?;
    let replay = replay_all(&mut opened).await?;
    let (format, generation) = (replay.state.format(), replay.state.generation());
    compared.given_up_by(&replay.state)?;
    let seen = Seen { token: replay.state.last_token(), generation, nonce };
    let reply = carry_out(Command::NoteBackup(operator), replay, &mut opened, nonce, clock).await?;
    store_witness(data_dir, &witness_of(&opened, directory, seen))?;
    match reply {
        Reply::BackupNoted { audit_seq } => Ok(BackupNote::Noted { audit_seq }),
        Reply::Refused(Refusal::FormatTooOld) => Ok(BackupNote::FormatTooOld { format }),
        _ => Err(StartError::Refused("the table does not take the note of the backup")),
    }
}

/// Has one command decided on top of what was replayed, commits what comes of it, and resigns. The tail of `opened` is then
/// the new one.
async fn carry_out(
    command: Command,
    replay: Replay,
    opened: &mut Opened,
    nonce: Nonce,
    clock: &dyn Clock,
) -> Result<Reply, StartError> {
    let tail = replay.tail;
    let now = Now { time: Time(0), wall: clock.read().wall };
    let table = LockTable::restore(replay.state, Settings::on(opened.durability), now);
    let mut state = State::new(table, opened.epoch, nonce, tail, opened.writer.limits());
    if tail.slot == Slot(0) {
        state.found(codec::FORMAT, now.wall);
    }
    let call = Call { tenant: TenantName::default_tenant(), identity: None, key: None, command };
    state.take(Ticket(1), call, now);
    // Nobody serves afterwards: the next node need not wait for a sign of life.
    state.resign();
    commit(&mut state, opened).await?;
    opened.tail = state.tail();
    let reply = std::iter::from_fn(|| state.delivery()).find_map(|delivery| match delivery {
        Delivery::Reply(_, reply) => Some(reply.into_inner()),
        Delivery::Live(..) => None,
    });
    reply.ok_or(StartError::Refused("the table does not answer"))
}

/// Opens once to find the longest whole prefix and the highest epoch that the journal knows, and lets go again.
async fn accept_loss(journal: &dyn Journal) -> Result<(Option<String>, Epoch), StartError> {
    let opened = journal.open(Claim { accept_loss: true, ..claim(Nonce::from_bytes(random())) }).await?;
    Ok((opened.loss, opened.epoch))
}

async fn replay_all(opened: &mut Opened) -> Result<Replay, StartError> {
    let mut replay = Replay::from_snapshot(&mut *opened.reader).await?;
    while replay.tail.slot < opened.tail.slot {
        let slots = replay.next_slots(&mut *opened.reader).await?;
        if slots.is_empty() {
            break;
        }
        for slot in &slots {
            replay.apply(slot, &mut Vec::new())?;
        }
    }
    Ok(replay)
}

async fn commit(state: &mut State, opened: &mut Opened) -> Result<(), StartError> {
    while let Some(work) = state.next_work() {
        let next = match work {
            Work::Append(batch) => state.appended(opened.writer.append(&batch).await),
            Work::Confirm => state.confirmed(opened.writer.confirm().await),
        };
        match next {
            Next::Committed(_) | Next::Confirmed => {}
            // Asking again opens anew, which resolves it.
            Next::Again(detail) => return Err(OpenError::Unavailable(detail).into()),
            Next::Stop(reason) => return Err(OpenError::Unavailable(reason.to_string()).into()),
        }
    }
    Ok(())
}

fn recovered(reply: Reply) -> Result<(Generation, u64), StartError> {
    match reply {
        Reply::Recovered { generation, token_floor } => Ok((generation, token_floor)),
        Reply::Refused(Refusal::TokensUsedUp) => {
            Err(StartError::Refused("no token below 2^53 would be left above the floor"))
        }
        _ => Err(StartError::Refused("the table does not take the recovery")),
    }
}
