//! Taking a journal over: schema, settings, probe, and the one statement that fences everybody before (J4, J5, J11).

use leasehold_journal::remote::claim::{failed_probe, probe_batch, probe_claim};
use leasehold_journal::remote::record::Stage;
use leasehold_journal::{Chained, Claim, Hash, OpenError, Tail};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};
use tokio_postgres::Row;

use crate::config::application_name;
use crate::connection::{Connection, Connector, Trouble};
use crate::row::{self, number};
use crate::sql;
use crate::writer::{Holder, WriteLink};

/// How often a claim that finds the head locked ends the one who holds the lock and tries again.
const ATTEMPTS: usize = 3;

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) cluster: ClusterId,
    pub(crate) holder: Holder,
    pub(crate) tail: Tail,
    /// The timeline of the engine, where commits wait for a standby. They may not wait on another one.
    pub(crate) bound_to: Option<i32>,
}

/// The only place where trouble becomes a reason not to open.
pub(crate) fn refuse(trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::NotAllowed(text) => OpenError::Refused(text),
        Trouble::Forbidden(text) => OpenError::Unsuitable(text),
        other => OpenError::Unavailable(other.to_string()),
    }
}

/// Creates schema and tables where they are missing.
pub(crate) async fn create_schema(connection: &Connection) -> Result<(), Trouble> {
    let rows = connection.query(sql::EXISTS, &[]).await?;
    if rows.first().is_some_and(|row| row.get(0)) {
        return Ok(());
    }
    connection.batch(sql::CREATE).await
}

/// Proves on a scratch journal that the engine takes a right append once and refuses it from a replaced writer (J11).
pub(crate) async fn probe(connection: &Connection, link: &WriteLink) -> Result<(), OpenError> {
    // A name that no configuration can have.
    let name = format!("probe/{:032x}", u128::from_be_bytes(ids::random()));
    let verdict = probe_at(connection, link, &name).await;
    let removed = connection.execute(sql::REMOVE, &[&name]).await;
    verdict?;
    removed.map(drop).map_err(refuse)
}

async fn probe_at(connection: &Connection, link: &WriteLink, name: &str) -> Result<(), OpenError> {
    let append = async |holder: Holder, slot| {
        let batch = Chained::new(probe_batch(slot), holder.epoch);
        link.append(name, holder.nonce, &batch).await.map_err(refuse)
    };
    let first = take(connection, name, &probe_claim(1)).await?.holder;
    let gap = append(first, Slot(2)).await?;
    let second = take(connection, name, &probe_claim(2)).await?.holder;
    let stale = append(first, Slot(1)).await?;
    let right = append(second, Slot(1)).await?;
    let twice = append(second, Slot(1)).await?;
    let took = [gap, stale, right, twice];
    if took == [false, false, true, false] {
        return Ok(());
    }
    Err(failed_probe("what it took of gap, stale, right, twice", took))
}

/// Claims; founds the journal when there is none.
pub(crate) async fn claim(
    connector: &Connector,
    connection: &Connection,
    claim: &Claim,
) -> Result<Claimed, OpenError> {
    let name = connector.name();
    for _ in 1..ATTEMPTS {
        match try_take(connection, name, claim).await {
            Err(Trouble::Locked) => end_stuck(connection, name).await,
            outcome => return outcome.map_err(refuse)?,
        }
    }
    take(connection, name, claim).await
}

async fn take(connection: &Connection, name: &str, claim: &Claim) -> Result<Claimed, OpenError> {
    try_take(connection, name, claim).await.map_err(refuse)?
}

async fn try_take(
    connection: &Connection,
    name: &str,
    claim: &Claim,
) -> Result<Result<Claimed, OpenError>, Trouble> {
    if let Some(claimed) = bump(connection, name, claim).await? {
        return Ok(Ok(claimed));
    }
    let cluster: &[u8] = claim.new_cluster.as_bytes();
    let (nonce, zero): (&[u8], &[u8]) = (claim.nonce.as_bytes(), &Hash::ZERO.0);
    if connection.execute(sql::FOUND, &[&name, &cluster, &nonce, &zero]).await? == 1
        && let Some(claimed) = bump(connection, name, claim).await?
    {
        return Ok(Ok(claimed));
    }
    let rows = connection.query(sql::WHY_NOT, &[&name]).await?;
    Ok(Err(rows.first().map_or_else(|| refuse(Trouble::NoTable), |row| why_not(row, claim.accept_loss))))
}

/// The compare-and-set itself.
async fn bump(connection: &Connection, name: &str, claim: &Claim) -> Result<Option<Claimed>, Trouble> {
    let (nonce, floor): (&[u8], i64) = (claim.nonce.as_bytes(), number(claim.epoch_floor.0));
    let expected = claim.expected_epoch.map(|epoch| number(epoch.0));
    let least = if claim.accept_loss { Stage::Unrecovered } else { Stage::Whole } as i16;
    let rows =
        connection.query(sql::CLAIM, &[&name, &nonce, &floor, &expected, &least, &claim.accept_loss]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    claimed_of(row, claim.nonce).map(Some).ok_or_else(|| {
        Trouble::Forbidden("the head of the journal is damaged: a column has a wrong length".into())
    })
}

fn claimed_of(row: &Row, nonce: Nonce) -> Option<Claimed> {
    Some(Claimed {
        cluster: ClusterId::from_bytes(row::fixed(row, 0)?),
        holder: Holder { epoch: Epoch(row::counter(row, 1)), nonce },
        tail: Tail { slot: row::slot(row, 2), hash: row::hash(row, 3)? },
        bound_to: row.get::<_, bool>(5).then(|| row.get(4)),
    })
}

fn why_not(row: &Row, accept_loss: bool) -> OpenError {
    let (format, stage): (i32, i16) = (row.get(0), row.get(1));
    if format != 1 {
        return OpenError::TooNew(format!("format {format}, this build knows 1"));
    }
    let stage = u8::try_from(stage).ok().and_then(Stage::from_number).unwrap_or(Stage::Filling);
    let lost_duel = || OpenError::LostDuel(Epoch(row::counter(row, 2)));
    let failed_over = (row.get::<_, bool>(3) && !accept_loss).then(failed_over);
    stage.refusal(accept_loss).or(failed_over).unwrap_or_else(lost_duel)
}

/// What was lost nobody can tell who has not seen it.
fn failed_over() -> OpenError {
    OpenError::Regressed(
        "PostgreSQL has failed over to a standby that nobody waited for, or was restored, since this journal was last \
         taken over: acknowledged writes may be missing. If the server that had them still exists, let it serve again; \
         else stop every node of this cluster and run `leasehold recover` with the data directory of a node that was \
         there, which raises all fencing tokens above every one that was given out"
            .to_owned(),
    )
}

/// Ends the statement of an older writer that holds the row lock: a node that was stopped in the middle of sending.
async fn end_stuck(connection: &Connection, name: &str) {
    match connection.query(sql::END_STUCK, &[&application_name(name)]).await {
        Ok(_) => {
            tracing::warn!(cluster = name, "the head was locked; connections stuck in a statement were ended")
        }
        Err(trouble) => tracing::warn!(%trouble, "the head is locked, and nothing could be ended"),
    }
}
