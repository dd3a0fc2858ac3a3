//! Token columns in the user's own statement.

use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};

use super::Error;
use crate::sql::{ColumnUpdate, Dialect, Form, Marks, TableName, check_span};
use crate::{Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// A rejected row is read again with a lock; if it would be admitted by then, the second attempt admits it.
const ATTEMPTS: usize = 3;

/// Parameters of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];
/// A part of a statement and its parameters.
type Part<'a> = (&'a str, Values<'a>);

/// Writes one row if the token in its own columns admits it, as one statement; a second one tells why not.
///
/// `key` finds one row, by a unique key, with the parameters `$1`…; `set` says what to write, with the parameters that follow: with
/// `key` = `"id = $1"`, `set` is `"balance = $2, note = $3"`.
///
/// # Errors
/// Rejected, among others because the row does not exist; Store, or a key that finds several rows: roll back.
pub async fn update_row<'ask>(
    transaction: &Transaction<'_>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
    table: &TableName,
    (key, key_params): Part<'_>,
    (set, set_params): Part<'_>,
) -> Result<(), Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check_span(fence, ask.grant())?;
    let update = ColumnUpdate { dialect: Dialect::Postgres, table, set, key };
    let params: Vec<&(dyn ToSql + Sync)> = key_params.iter().chain(set_params).copied().collect();
    let form = if ask.grant().advances() { Form::of(fence, ask) } else { Form::Never };
    for _ in 0..ATTEMPTS {
        if form != Form::Never
            && marked(transaction, &update.fenced(form, &marks(params.len())), &params, ask.grant()).await?
        {
            return Ok(());
        }
        let row = read(transaction, &update, key_params).await?;
        match decide(fence, row.as_ref(), Some(ask)) {
            Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
            // The row is held now: a shared grant writes without a mark.
            Verdict::Admitted(None) => return plain(transaction, &update, &params).await,
            Verdict::Admitted(Some(_)) => {}
        }
    }
    Err(FenceError::Corrupt("the row does not stay".to_owned()))
}

/// Raises the token of one row before the first read. `key` is as in [`update_row`].
///
/// # Errors
/// As [`update_row`].
pub async fn claim_row(
    client: &impl GenericClient,
    fence: &Fence,
    grant: &Grant,
    table: &TableName,
    (key, key_params): Part<'_>,
) -> Result<(), Error> {
    check_span(fence, grant)?;
    let update = ColumnUpdate { dialect: Dialect::Postgres, table, set: "", key };
    let sql = update.claimed(&marks(key_params.len()));
    if fence.fences(grant) && grant.advances() && marked(client, &sql, key_params, grant).await? {
        return Ok(());
    }
    match decide_claim(fence, read(client, &update, key_params).await?.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

fn marks(n: usize) -> Marks {
    Marks { guard: format!("${}::text", n + 1), token: format!("${}::bigint", n + 2) }
}

async fn marked(
    client: &impl GenericClient,
    sql: &str,
    params: Values<'_>,
    grant: &Grant,
) -> Result<bool, Error> {
    let guard = grant.resource().as_str();
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let ours: [&(dyn ToSql + Sync); 2] = [&guard, &token];
    let all: Vec<_> = params.iter().chain(&ours).copied().collect();
    one(client.execute(sql, &all).await?)
}

async fn read(
    client: &impl GenericClient,
    update: &ColumnUpdate<'_>,
    key: Values<'_>,
) -> Result<Option<Row>, Error> {
    let kept = client.query_opt(&update.read(), key).await?;
    let kept = kept.ok_or(FenceError::Rejected(Rejection::MissingRow))?;
    crate::sql::column_row(kept.try_get(0)?, kept.try_get(1)?, kept.try_get(2)?)
}

async fn plain(
    transaction: &Transaction<'_>,
    update: &ColumnUpdate<'_>,
    params: Values<'_>,
) -> Result<(), Error> {
    match one(transaction.execute(&update.plain(), params).await?)? {
        true => Ok(()),
        false => Err(FenceError::Rejected(Rejection::MissingRow)),
    }
}

fn one(rows: u64) -> Result<bool, Error> {
    match rows {
        0 | 1 => Ok(rows == 1),
        several => Err(FenceError::Corrupt(format!("the key names {several} rows, not one: roll back"))),
    }
}
