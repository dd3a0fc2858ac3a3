//! Token columns in the user's own statement.

use mysql_async::prelude::Queryable;
use mysql_async::{Params, Transaction, Value};

use super::Error;
use crate::sql::{ColumnUpdate, Dialect, Form, Marks, TableName, check_span};
use crate::{Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// A rejected row is read again with a lock; if it would be admitted by then, the second attempt admits it.
const ATTEMPTS: usize = 3;

/// A part of the statement and its parameters by name.
type Part<'a> = (&'a str, Vec<(String, Value)>);

/// Writes one row if the token in its own columns admits it, as one statement; a second one tells why not.
///
/// `key` finds one row, by a unique key. Parameters are named, and the names do not begin with `fence_`: with `key` = `"id = :id"`, `set` may be
/// `"balance = :balance"`. All columns of the key part are named in its own parameters.
///
/// # Errors
/// Rejected, among others because the row does not exist; Store, or a key that finds several rows: roll back.
pub async fn update_row<'ask>(
    transaction: &mut Transaction<'_>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
    table: &TableName,
    (key, key_params): Part<'_>,
    (set, set_params): Part<'_>,
) -> Result<(), Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check_span(fence, ask.grant())?;
    let update = ColumnUpdate { dialect: Dialect::Mariadb, table, set, key };
    let params: Vec<_> = key_params.iter().cloned().chain(set_params).collect();
    let form = if ask.grant().advances() { Form::of(fence, ask) } else { Form::Never };
    for _ in 0..ATTEMPTS {
        if form != Form::Never
            && marked(transaction, &update.fenced(form, &marks()), params.clone(), ask.grant()).await?
        {
            return Ok(());
        }
        let row = read(transaction, &update, key_params.clone()).await?;
        match decide(fence, row.as_ref(), Some(ask)) {
            Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
            // The row is held now: a shared grant writes without a mark. No row changed means nothing to change.
            Verdict::Admitted(None) => {
                return execute(transaction, &update.plain(), params).await.map(|_| ());
            }
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
    connection: &mut impl Queryable,
    fence: &Fence,
    grant: &Grant,
    table: &TableName,
    (key, key_params): Part<'_>,
) -> Result<(), Error> {
    check_span(fence, grant)?;
    let update = ColumnUpdate { dialect: Dialect::Mariadb, table, set: "", key };
    let sql = update.claimed(&marks());
    if fence.fences(grant) && grant.advances() && marked(connection, &sql, key_params.clone(), grant).await? {
        return Ok(());
    }
    match decide_claim(fence, read(connection, &update, key_params).await?.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

fn marks() -> Marks {
    Marks { guard: ":fence_guard".to_owned(), token: ":fence_token".to_owned() }
}

async fn marked(
    connection: &mut impl Queryable,
    sql: &str,
    mut params: Vec<(String, Value)>,
    grant: &Grant,
) -> Result<bool, Error> {
    params.push(("fence_guard".to_owned(), grant.resource().as_str().as_bytes().into()));
    params.push(("fence_token".to_owned(), grant.token().get().into()));
    Ok(execute(connection, sql, params).await? == 1)
}

async fn read(
    connection: &mut impl Queryable,
    update: &ColumnUpdate<'_>,
    key: Vec<(String, Value)>,
) -> Result<Option<Row>, Error> {
    let kept: Option<(Option<Vec<u8>>, i64, i64)> = connection.exec_first(update.read(), named(key)).await?;
    let (guard, token, writes) = kept.ok_or(FenceError::Rejected(Rejection::MissingRow))?;
    let guard = guard.map(|guard| String::from_utf8_lossy(&guard).into_owned());
    crate::sql::column_row(guard.as_deref(), token, writes)
}

async fn execute(
    connection: &mut impl Queryable,
    sql: &str,
    params: Vec<(String, Value)>,
) -> Result<u64, Error> {
    let result = connection.exec_iter(sql, named(params)).await?;
    let rows = result.affected_rows();
    result.drop_result().await?;
    match rows {
        0 | 1 => Ok(rows),
        several => Err(FenceError::Corrupt(format!("the key names {several} rows, not one: roll back"))),
    }
}

fn named(params: Vec<(String, Value)>) -> Params {
    if params.is_empty() { Params::Empty } else { Params::from(params) }
}
