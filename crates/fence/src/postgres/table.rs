//! The fence table.

use futures_util::future::join;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Statement, Transaction};

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

/// The statement of an uncounted write, prepared on one connection: the server does not parse and plan it each time. Not
/// for connections through a pooler that changes them between transactions.
#[derive(Clone, Debug)]
pub struct Prepared(Statement);

impl Prepared {
    /// Prepares it on this connection.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn new(client: &impl GenericClient) -> Result<Self, tokio_postgres::Error> {
        let sql = statements::advance(Form::Again).expect("this form has a statement");
        let types = [Type::TEXT, Type::INT8, Type::TEXT, Type::INT8];
        Ok(Self(client.prepare_typed(&sql, &types).await?))
    }

    /// As [`admit`], on a transaction of the connection on which this was prepared. What is not admitted at once, or
    /// is counted by steps, takes the way of [`admit`].
    ///
    /// # Errors
    /// As [`admit`].
    pub async fn admit<'tx, 'conn>(
        &self,
        transaction: &'tx Transaction<'conn>,
        fence: &Fence,
        ask: &Ask,
    ) -> Result<Admitted<'tx, Transaction<'conn>>, Error> {
        if self.advance(transaction, fence, ask).await? {
            return Ok(Admitted::new(transaction, ask));
        }
        admit(transaction, fence, ask).await
    }

    /// Checks and writes by one statement of the caller's, in one round trip: the check costs no more of them than the
    /// write does alone. Gives the transaction back, for the commit, and the number of rows written. Whatever is
    /// not admitted, or fails, is rolled back: a write whose check came to nothing cannot be committed.
    ///
    /// # Errors
    /// As [`admit`]; Store also when the statement fails.
    pub async fn write<'conn>(
        &self,
        transaction: Transaction<'conn>,
        fence: &Fence,
        ask: &Ask,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Transaction<'conn>, u64), Error> {
        let both = join(self.advance(&transaction, fence, ask), transaction.execute(statement, params));
        let (admitted, written) = both.await;
        if !admitted? {
            // Check and write commit together, whichever came first.
            check(&transaction, fence, ask).await?;
        }
        Ok((transaction, written?))
    }

    /// Whether the statement admitted it; if not, or if it is another statement's affair, the row says why.
    async fn advance(&self, transaction: &Transaction<'_>, fence: &Fence, ask: &Ask) -> Result<bool, Error> {
        let grant = ask.grant();
        if Form::of(fence, ask) != Form::Again || !grant.advances() {
            return Ok(false);
        }
        let (name, guard, permit) = (fence.name().as_str(), fence.guard().as_str(), grant.row_number());
        let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
        Ok(transaction.execute(&self.0, &[&name, &permit, &guard, &token]).await? == 1)
    }
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
