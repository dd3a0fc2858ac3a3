//! PostgreSQL, with `sqlx`.
//!
//! The fence table of [`crate::postgres`], with the same statements and the same guarantee, for programs that use
//! `sqlx`: atomic, at every isolation level. Programs with either driver may share a fence.
//!
//! Beware: with `sqlx` 0.9.0 a cancelled `begin()` can leave its connection unusable in the pool; do not drop that
//! future.
//!
//! MySQL and SQLite through `sqlx` are not offered: their fences are [`crate::mariadb`] and [`crate::sqlite`], with
//! drivers of their own.

use ::sqlx::postgres::{PgArguments, PgRow};
use ::sqlx::query::Query;
use ::sqlx::{AssertSqlSafe, PgConnection, Postgres, Row as _, Transaction, query};

use crate::rollout::{Rollout, Timer};
use crate::sql::{Form, postgres as statements};
use crate::{AdmittedMut, Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// What can come of asking the fence.
pub type Error = FenceError<::sqlx::Error>;

/// A rejected row is read again with a lock; if it would be admitted by then, the second attempt admits it.
const ATTEMPTS: usize = 3;

/// Checks the ask and advances the fence in the open transaction. What is written with the [`AdmittedMut`] is there
/// exactly if the advance is. One round trip when admitted.
///
/// Not cancel-safe for the transaction: roll back if the call was dropped.
///
/// # Errors
/// Rejected: roll back and stop the work. Store: roll back; the caller may try again.
pub async fn admit<'tx, 'conn, 'ask>(
    transaction: &'tx mut Transaction<'conn, Postgres>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
) -> Result<AdmittedMut<'tx, Transaction<'conn, Postgres>>, Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check(transaction, fence, ask).await?;
    Ok(AdmittedMut::new(transaction, ask))
}

/// As [`admit`], while the fence is being switched on: what the stage does not stop is counted and admitted.
///
/// # Errors
/// As [`admit`], as far as the stage goes.
pub async fn admit_staged<'tx, 'conn>(
    transaction: &'tx mut Transaction<'conn, Postgres>,
    fence: &Fence,
    ask: &Ask,
    rollout: &Rollout,
) -> Result<AdmittedMut<'tx, Transaction<'conn, Postgres>>, Error> {
    let checks = rollout.stage(fence.guard()).checks();
    let timer = Timer::start();
    let outcome = if checks { check(transaction, fence, ask).await } else { Ok(()) };
    rollout.checked(fence.guard(), timer.elapsed());
    rollout.settle_inside(fence, ask, outcome)?;
    Ok(AdmittedMut::new(transaction, ask))
}

/// Raises the maximum before the first read, so that no older holder can write between that read and the write that
/// follows from it. On a connection, or in a transaction of its own that is committed before the read.
///
/// # Errors
/// Rejected: the lease is lost. Store: try again.
pub async fn claim(connection: &mut PgConnection, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    let raises = fence.fences(grant) && grant.advances();
    if raises && execute(connection, statements::claim(), fence, grant).await? == 1 {
        return Ok(());
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
pub async fn raise_past(connection: &mut PgConnection, fence: &Fence, grant: &Grant) -> Result<(), Error> {
    crate::contract::raised(claim(connection, fence, &crate::contract::after(grant)).await)
}

async fn check(connection: &mut PgConnection, fence: &Fence, ask: &Ask) -> Result<(), Error> {
    let grant = ask.grant();
    if !grant.advances() && fence.fences(grant) {
        // A shared grant needs a row to hold on to, so that no exclusive grant makes it meanwhile.
        execute(connection, statements::make(), fence, grant).await?;
    }
    for _ in 0..ATTEMPTS {
        let advance = statements::advance(Form::of(fence, ask)).filter(|_| grant.advances());
        if let Some(sql) = advance
            && execute(connection, sql, fence, grant).await? == 1
        {
            return Ok(());
        }
        match decide(fence, read(connection, fence, grant).await?.as_ref(), Some(ask)) {
            Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
            Verdict::Admitted(_) if !grant.advances() => return Ok(()),
            Verdict::Admitted(_) => {}
        }
    }
    Err(FenceError::Corrupt(format!("the row of fence {} does not stay", fence.name())))
}

/// A statement with the name and the permit. Not prepared under a name: poolers between are no problem.
fn asked(sql: String, fence: &Fence, grant: &Grant) -> Query<'static, Postgres, PgArguments> {
    query(AssertSqlSafe(sql)).persistent(false).bind(fence.name().to_string()).bind(grant.row_number())
}

async fn execute(
    connection: &mut PgConnection,
    sql: String,
    fence: &Fence,
    grant: &Grant,
) -> Result<u64, Error> {
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let statement = asked(sql, fence, grant).bind(fence.guard().to_string()).bind(token);
    Ok(statement.execute(connection).await?.rows_affected())
}

async fn read(connection: &mut PgConnection, fence: &Fence, grant: &Grant) -> Result<Option<Row>, Error> {
    let kept = asked(statements::read(grant), fence, grant).fetch_optional(connection).await?;
    let row = |row: PgRow| crate::sql::row(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    kept.map(row).transpose()
}
