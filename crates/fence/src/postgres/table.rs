//! The fence table.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Transaction};

use super::Error;
use crate::rollout::{Rollout, Timer};
use crate::sql::{Form, postgres as statements};
use crate::{Admitted, Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// A rejected row is read again with a lock; if it would be admitted by then, the second attempt admits it.
const ATTEMPTS: usize = 3;

/// Checks the ask and advances the fence in the open transaction. What is written with the [`Admitted`] is there
/// exactly if the advance is. One round trip when admitted.
///
/// Not cancel-safe for the transaction: roll back if the call was dropped.
///
/// # Errors
/// Rejected: roll back and stop the work. Store: roll back; the caller may try again.
pub async fn admit<'tx, 'conn, 'ask>(
    transaction: &'tx Transaction<'conn>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
) -> Result<Admitted<'tx, Transaction<'conn>>, Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check(transaction, fence, ask).await?;
    Ok(Admitted::new(transaction, ask))
}

/// As [`admit`], while the fence is being switched on: what the stage does not stop is counted and admitted.
///
/// # Errors
/// As [`admit`], as far as the stage goes.
pub async fn admit_staged<'tx, 'conn>(
    transaction: &'tx Transaction<'conn>,
    fence: &Fence,
    ask: &Ask,
    rollout: &Rollout,
) -> Result<Admitted<'tx, Transaction<'conn>>, Error> {
    let checks = rollout.stage(fence.guard()).checks();
    let timer = Timer::start();
    let outcome = if checks { check(transaction, fence, ask).await } else { Ok(()) };
    rollout.checked(fence.guard(), timer.elapsed());
    rollout.settle_inside(fence, ask, outcome)?;
    Ok(Admitted::new(transaction, ask))
}

async fn check(transaction: &Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<(), Error> {
    if !ask.grant().advances() {
        make(transaction, fence, ask.grant()).await?;
        return match decide(fence, read(transaction, fence, ask.grant()).await?.as_ref(), Some(ask)) {
            Verdict::Admitted(_) => Ok(()),
            Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        };
    }
    for _ in 0..ATTEMPTS {
        if advance(transaction, fence, ask).await? {
            return Ok(());
        }
        let row = read(transaction, fence, ask.grant()).await?;
        if let Verdict::Rejected(rejection) = decide(fence, row.as_ref(), Some(ask)) {
            return Err(FenceError::Rejected(rejection));
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
pub async fn claim(client: &impl GenericClient, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    let raises = fence.fences(grant) && grant.advances();
    if raises && execute(client, &statements::claim(), fence, grant).await? == 1 {
        return Ok(());
    }
    match decide_claim(fence, read(client, fence, grant).await?.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

/// Shuts out this grant and all before it, as after a force-release: only later grants are admitted.
///
/// # Errors
/// As [`claim`]; a maximum that is already higher is no error.
pub async fn raise_past(client: &impl GenericClient, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    crate::contract::raised(claim(client, fence, &crate::contract::after(grant)).await)
}

/// Check and advance as one statement; whether it admitted.
async fn advance(transaction: &Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<bool, Error> {
    let Some(sql) = statements::advance(Form::of(fence, ask)) else { return Ok(false) };
    Ok(execute(transaction, &sql, fence, ask.grant()).await? == 1)
}

/// Makes the row of a fence that has none: a shared grant needs one to hold on to, so that no exclusive grant makes it
/// meanwhile.
async fn make(transaction: &Transaction<'_>, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    if fence.fences(grant) {
        execute(transaction, &statements::make(), fence, grant).await?;
    }
    Ok(())
}

async fn execute(client: &impl GenericClient, sql: &str, fence: &Fence, grant: &Grant) -> Result<u64, Error> {
    let (name, guard, permit) = (fence.name().as_str(), fence.guard().as_str(), grant.row_number());
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let params: [(&(dyn ToSql + Sync), Type); 4] =
        [(&name, Type::TEXT), (&permit, Type::INT8), (&guard, Type::TEXT), (&token, Type::INT8)];
    Ok(client.execute_typed(sql, &params).await?)
}

/// The row, held until the transaction ends: against everyone for an advancing grant, against writers for a shared.
async fn read(client: &impl GenericClient, fence: &Fence, grant: &Grant) -> Result<Option<Row>, Error> {
    let sql = statements::read(grant);
    let (name, permit) = (fence.name().as_str(), grant.row_number());
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&permit, Type::INT8)];
    let kept = client.query_typed_opt(&sql, &params).await?;
    kept.map(|row| crate::sql::row(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)).transpose()
}
