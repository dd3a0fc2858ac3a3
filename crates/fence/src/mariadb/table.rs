//! The fence table.

use mysql_async::prelude::Queryable;
use mysql_async::{Params, Transaction, params};

use super::Error;
use crate::rollout::{Rollout, Timer};
use crate::sql::{FENCE_TABLE, Form};
use crate::{AdmittedMut, Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// The first attempt finds that there is no row, the second has made one.
const ATTEMPTS: usize = 3;

/// Checks the ask and advances the fence in the open transaction. What is written with the [`AdmittedMut`] is there
/// exactly if the advance is. One round trip when admitted, except for the first write of a fence.
///
/// Not cancel-safe for the transaction: roll back if the call was dropped.
///
/// # Errors
/// Rejected: roll back and stop the work. Store: roll back; the caller may try again.
pub async fn admit<'tx, 'conn, 'ask>(
    transaction: &'tx mut Transaction<'conn>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
) -> Result<AdmittedMut<'tx, Transaction<'conn>>, Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check(transaction, fence, ask).await?;
    Ok(AdmittedMut::new(transaction, ask))
}

/// As [`admit`], while the fence is being switched on: what the stage does not stop is counted and admitted.
///
/// # Errors
/// As [`admit`], as far as the stage goes.
pub async fn admit_staged<'tx, 'conn>(
    transaction: &'tx mut Transaction<'conn>,
    fence: &Fence,
    ask: &Ask,
    rollout: &Rollout,
) -> Result<AdmittedMut<'tx, Transaction<'conn>>, Error> {
    let checks = rollout.stage(fence.guard()).checks();
    let timer = Timer::start();
    let outcome = if checks { check(transaction, fence, ask).await } else { Ok(()) };
    rollout.checked(fence.guard(), timer.elapsed());
    rollout.settle_inside(fence, ask, outcome)?;
    Ok(AdmittedMut::new(transaction, ask))
}

async fn check(transaction: &mut Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<(), Error> {
    if !ask.grant().advances() {
        make(transaction, fence, ask.grant()).await?;
    }
    for _ in 0..ATTEMPTS {
        if advance(transaction, fence, ask).await? {
            return Ok(());
        }
        let row = read(transaction, fence, ask.grant()).await?;
        match decide(fence, row.as_ref(), Some(ask)) {
            Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
            Verdict::Admitted(None) => return Ok(()),
            Verdict::Admitted(Some(_)) => make(transaction, fence, ask.grant()).await?,
        }
    }
    Err(FenceError::Corrupt(format!("the row of fence {} does not stay", fence.name())))
}

/// Raises the maximum before the first read, so that no older holder can write between that read and the write that
/// follows from it. On a connection, or in a transaction of its own that is committed before the read.
///
/// Cancel-safe on a connection: the claim happened or not, and can be repeated.
///
/// # Errors
/// Rejected: the lease is lost. Store: try again.
pub async fn claim(connection: &mut impl Queryable, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    let sql = format!(
        "UPDATE {FENCE_TABLE} SET token = :token, writes = 0 \
         WHERE name = :name AND permit = :permit AND guard = :guard AND token < :token"
    );
    if fence.fences(grant) && grant.advances() {
        make(connection, fence, grant).await?;
        if execute(connection, &sql, fence, grant).await? == 1 {
            return Ok(());
        }
    }
    match decide_claim(fence, read(connection, fence, grant).await?.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

/// Shuts out this grant and all before it, as after a force-release: only later grants are admitted.
///
/// # Errors
/// As [`claim`]; a maximum that is already higher is no error.
pub async fn raise_past(connection: &mut impl Queryable, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    crate::contract::raised(claim(connection, fence, &crate::contract::after(grant)).await)
}

/// Check and advance as one statement; whether it admitted.
async fn advance(transaction: &mut Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<bool, Error> {
    let form = if ask.grant().advances() { Form::of(fence, ask) } else { Form::Never };
    if form == Form::Never {
        return Ok(false);
    }
    // The count stands before the token: assignments are made from left to right, and the count needs the old token.
    // It always changes, so that the number of rows is right with and without CLIENT_FOUND_ROWS.
    let sql = format!(
        "UPDATE {FENCE_TABLE} SET writes = IF(token = :token, writes + 1, 1), token = :token \
         WHERE name = :name AND permit = :permit AND guard = :guard AND {}",
        form.condition("token", "writes", ":token")
    );
    Ok(execute(transaction, &sql, fence, ask.grant()).await? > 0)
}

/// Makes the row of a fence that has none, and holds it.
async fn make(connection: &mut impl Queryable, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes) VALUES (:name, :permit, :guard, 0, 0) \
         ON DUPLICATE KEY UPDATE writes = writes"
    );
    if fence.fences(grant) {
        execute(connection, &sql, fence, grant).await?;
    }
    Ok(())
}

async fn execute(
    connection: &mut impl Queryable,
    sql: &str,
    fence: &Fence,
    grant: &Grant,
) -> Result<u64, Error> {
    let result = connection.exec_iter(sql, values(fence, grant)).await?;
    let rows = result.affected_rows();
    result.drop_result().await?;
    Ok(rows)
}

fn values(fence: &Fence, grant: &Grant) -> Params {
    params! {
        "name" => fence.name().as_str().as_bytes(),
        "permit" => grant.row_number(),
        "guard" => fence.guard().as_str().as_bytes(),
        "token" => grant.token().get(),
    }
}

/// The row as it is now, held until the transaction ends.
async fn read(connection: &mut impl Queryable, fence: &Fence, grant: &Grant) -> Result<Option<Row>, Error> {
    let sql = format!(
        "SELECT guard, token, writes FROM {FENCE_TABLE} WHERE name = :name AND permit = :permit FOR UPDATE"
    );
    let here = params! { "name" => fence.name().as_str().as_bytes(), "permit" => grant.row_number() };
    let kept: Option<(Vec<u8>, i64, i64)> = connection.exec_first(sql, here).await?;
    kept.map(|(guard, token, writes)| crate::sql::row(&String::from_utf8_lossy(&guard), token, writes))
        .transpose()
}
