//! Token columns in the user's own statement.

use rusqlite::{Connection, OptionalExtension, ToSql, Transaction};

use super::Error;
use crate::sql::{ColumnUpdate, Dialect, Form, Marks, TableName, check_span};
use crate::{Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// A part of a statement and its parameters.
type Part<'a> = (&'a str, &'a [&'a dyn ToSql]);

/// Writes one row if the token in its own columns admits it.
///
/// `key` finds one row, by a unique key, with the parameters `?1`…; `set` says what to write, with the parameters that follow: with
/// `key` = `"id = ?1"`, `set` is `"balance = ?2, note = ?3"`.
///
/// # Errors
/// Rejected, among others because the row does not exist; Store, or a key that finds several rows: roll back.
pub fn update_row<'ask>(
    transaction: &Transaction<'_>,
    fence: &Fence,
    ask: impl Into<Option<&'ask Ask>>,
    table: &TableName,
    (key, key_params): Part<'_>,
    (set, set_params): Part<'_>,
) -> Result<(), Error> {
    let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
    check_span(fence, ask.grant())?;
    let update = ColumnUpdate { dialect: Dialect::Sqlite, table, set, key };
    let params: Vec<&dyn ToSql> = key_params.iter().chain(set_params).copied().collect();
    let row = read(transaction, &update, key_params)?;
    match decide(fence, row.as_ref(), Some(ask)) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(None) => one(transaction.prepare_cached(&update.plain())?.execute(&*params)?),
        Verdict::Admitted(Some(_)) => {
            let sql = update.fenced(Form::of(fence, ask), &marks(params.len()));
            one(marked(transaction, &sql, &params, ask.grant())?)
        }
    }
}

/// Raises the token of one row before the first read. `key` is as in [`update_row`].
///
/// # Errors
/// As [`update_row`].
pub fn claim_row(
    connection: &Connection,
    fence: &Fence,
    grant: &Grant,
    table: &TableName,
    (key, key_params): Part<'_>,
) -> Result<(), Error> {
    check_span(fence, grant)?;
    let update = ColumnUpdate { dialect: Dialect::Sqlite, table, set: "", key };
    let sql = update.claimed(&marks(key_params.len()));
    if fence.fences(grant) && grant.advances() && marked(connection, &sql, key_params, grant)? > 0 {
        return Ok(());
    }
    match decide_claim(fence, read(connection, &update, key_params)?.as_ref(), grant) {
        Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        Verdict::Admitted(_) => Ok(()),
    }
}

fn marks(n: usize) -> Marks {
    Marks { guard: format!("?{}", n + 1), token: format!("?{}", n + 2) }
}

fn marked(connection: &Connection, sql: &str, params: &[&dyn ToSql], grant: &Grant) -> Result<usize, Error> {
    let guard = grant.resource().as_str();
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    let ours: [&dyn ToSql; 2] = [&guard, &token];
    let all: Vec<&dyn ToSql> = params.iter().chain(&ours).copied().collect();
    Ok(connection.prepare_cached(sql)?.execute(&*all)?)
}

fn read(
    connection: &Connection,
    update: &ColumnUpdate<'_>,
    key: &[&dyn ToSql],
) -> Result<Option<Row>, Error> {
    let values = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get(1)?, row.get(2)?));
    let kept = connection.prepare_cached(&update.read())?.query_row(key, values).optional()?;
    let (guard, token, writes) = kept.ok_or(FenceError::Rejected(Rejection::MissingRow))?;
    crate::sql::column_row(guard.as_deref(), token, writes)
}

fn one(rows: usize) -> Result<(), Error> {
    match rows {
        1 => Ok(()),
        rows => Err(FenceError::Corrupt(format!("the key names {rows} rows, not one: roll back"))),
    }
}
