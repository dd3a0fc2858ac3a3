//! The fence table.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Error;
use crate::rollout::{Rollout, Timer};
use crate::sql::FENCE_TABLE;
use crate::{Admitted, Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// Checks the ask and advances the fence in the open transaction. What is written with the [`Admitted`] is there
/// exactly if the advance is.
///
/// # Errors
/// Rejected: roll back and stop the work. Store: roll back; the caller may try again.
pub fn admit<'tx, 'conn, 'ask>(
    transaction: &'tx Transaction<'conn>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
) -> Result<Admitted<'tx, Transaction<'conn>>, Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check(transaction, fence, ask)?;
    Ok(Admitted::new(transaction, ask))
}

/// As [`admit`], while the fence is being switched on: what the stage does not stop is counted and admitted.
///
/// # Errors
/// As [`admit`], as far as the stage goes.
pub fn admit_staged<'tx, 'conn>(
    transaction: &'tx Transaction<'conn>,
    fence: &Fence,
    ask: &Ask,
    rollout: &Rollout,
) -> Result<Admitted<'tx, Transaction<'conn>>, Error> {
    let checks = rollout.stage(fence.guard()).checks();
    let timer = Timer::start();
    let outcome = if checks { check(transaction, fence, ask) } else { Ok(()) };
    rollout.checked(fence.guard(), timer.elapsed());
    rollout.settle_inside(fence, ask, outcome)?;
    Ok(Admitted::new(transaction, ask))
}

fn check(transaction: &Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<(), Error> {
    let row = read(transaction, fence, ask.grant())?;
    keep(transaction, fence, ask.grant(), decide(fence, row.as_ref(), Some(ask)))
}

/// Raises the maximum before the first read, so that no older holder can write between that read and the write that
/// follows from it. In a transaction of its own, or on a connection without one.
///
/// # Errors
/// Rejected: the lease is lost. Store: try again.
pub fn claim(connection: &Connection, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes) VALUES (?1, ?2, ?3, ?4, 0) \
         ON CONFLICT (name, permit) DO UPDATE SET token = excluded.token, writes = 0 \
         WHERE guard = excluded.guard AND token < excluded.token"
    );
    if fence.fences(grant) && grant.advances() {
        let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
        let values = params![fence.name().as_str(), grant.row_number(), fence.guard().as_str(), token];
        if connection.prepare_cached(&sql)?.execute(values)? == 1 {
            return Ok(());
        }
    }
    let row = read(connection, fence, grant)?;
    match decide_claim(fence, row.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

/// Shuts out this grant and all before it, as after a force-release: only later grants are admitted.
///
/// # Errors
/// As [`claim`]; a maximum that is already higher is no error.
pub fn raise_past(connection: &Connection, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    crate::contract::raised(claim(connection, fence, &crate::contract::after(grant)))
}

fn read(connection: &Connection, fence: &Fence, grant: &Grant) -> Result<Option<Row>, Error> {
    let sql = format!("SELECT guard, token, writes FROM {FENCE_TABLE} WHERE name = ?1 AND permit = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let values = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?));
    let kept = statement.query_row(params![fence.name().as_str(), grant.row_number()], values).optional()?;
    kept.map(|(guard, token, writes)| crate::sql::row(&guard, token, writes)).transpose()
}

/// Only in a transaction, which has kept the row since [`read`].
fn keep(connection: &Transaction<'_>, fence: &Fence, grant: &Grant, verdict: Verdict) -> Result<(), Error> {
    let next = match verdict {
        Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(None) => return Ok(()),
        Verdict::Admitted(Some(next)) => next,
    };
    let sql = format!(
        "INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (name, permit) DO UPDATE SET token = excluded.token, writes = excluded.writes"
    );
    let writes = i64::try_from(next.writes).map_err(|_| FenceError::Corrupt("too many writes".to_owned()))?;
    let values = params![
        fence.name().as_str(),
        grant.row_number(),
        next.guard.as_str(),
        next.highest_number(),
        writes
    ];
    connection.prepare_cached(&sql)?.execute(values)?;
    Ok(())
}
