//! What an operator does to a journal that no node serves.

use std::path::Path;

use leasehold_core::{Command, LockTable, Operator, Recover, Refusal, Reply, Settings, Ticket};
use leasehold_journal::{Claim, Journal, OpenError, Opened};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, Generation, Nonce, Now, TenantName, Time, limits};

use crate::keepers::{DataLock, load_witness, store_witness};
use crate::open::{Seen, claim, directory, witness_of};
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
    // The embedded journal has a lock of its own.
    let _lock = if journal.kind() == "embedded" { None } else { Some(DataLock::take(data_dir)?) };
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
    let tail = replay.tail;
    let now = Now { time: Time(0), wall: clock.read().wall };
    let table = LockTable::restore(replay.state, Settings::on(opened.durability), now);
    let mut state = State::new(table, opened.epoch, nonce, tail, opened.writer.limits());
    let call = Call {
        tenant: TenantName::default_tenant(),
        identity: None,
        key: None,
        command: Command::Recover(Recover { token_floor, operator }),
    };
    state.take(Ticket(1), call, now);
    // Nobody serves afterwards: the next node need not wait for a sign of life.
    state.resign();
    commit(&mut state, &mut opened).await?;
    let (generation, token_floor) = recovered(&mut state)?;

    opened.tail = state.tail();
    let directory = directory(journal, data_dir)?;
    let seen = Seen { token: token_floor, generation, nonce };
    store_witness(data_dir, &witness_of(&opened, directory, seen))?;
    Ok(Recovered { cluster: opened.cluster, generation, token_floor, epoch: opened.epoch, loss })
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

fn recovered(state: &mut State) -> Result<(Generation, u64), StartError> {
    let mut deliveries = Vec::new();
    state.deliver(&mut deliveries);
    let reply = deliveries.into_iter().find_map(|delivery| match delivery {
        Delivery::Reply(_, reply) => Some(reply.into_inner()),
        Delivery::Live(..) => None,
    });
    match reply {
        Some(Reply::Recovered { generation, token_floor }) => Ok((generation, token_floor)),
        Some(Reply::Refused(Refusal::TokensUsedUp)) => {
            Err(StartError::Refused("no token below 2^53 would be left above the floor"))
        }
        _ => Err(StartError::Refused("the table does not take the recovery")),
    }
}
