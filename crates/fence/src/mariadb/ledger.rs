//! The ledger of side effects.

use leasehold_types::RequestKey;
use mysql_async::Transaction;
use mysql_async::prelude::Queryable;

use super::Error;
use crate::effects::{Began, Kept};
use crate::sql::LEDGER_TABLE;
use crate::{AdmittedMut, FenceError};

/// Notes that this grant begins an operation, and tells what is known of it. Commit before the effect.
///
/// # Errors
/// Store: roll back.
pub async fn begin(
    admitted: &mut AdmittedMut<'_, Transaction<'_>>,
    operation: &RequestKey,
) -> Result<Began, Error> {
    let (resource, token) = (admitted.ask().grant().resource().clone(), admitted.token());
    let (resource, operation) = (resource.as_str().as_bytes(), operation.as_str().as_bytes());
    let sql =
        format!("SELECT token, outcome FROM {LEDGER_TABLE} WHERE resource = ? AND operation = ? FOR UPDATE");
    let kept: Option<(i64, Option<String>)> = admitted.exec_first(sql, (resource, operation)).await?;
    let began = match kept {
        Some((token_kept, outcome)) => Kept { token: token_kept, outcome }.began(token)?,
        None => Began::Fresh,
    };
    if !matches!(began, Began::Done { .. }) {
        let sql = format!(
            "INSERT INTO {LEDGER_TABLE} (resource, operation, token) VALUES (?, ?, ?) \
             ON DUPLICATE KEY UPDATE token = VALUES(token)"
        );
        admitted.exec_drop(sql, (resource, operation, token.get())).await?;
    }
    Ok(began)
}

/// Notes that the operation has ended, and how.
///
/// # Errors
/// Store; or the operation was never begun, or has ended before: roll back.
pub async fn end(
    admitted: &mut AdmittedMut<'_, Transaction<'_>>,
    operation: &RequestKey,
    outcome: &str,
) -> Result<(), Error> {
    let (resource, token) = (admitted.ask().grant().resource().clone(), admitted.token().get());
    let sql = format!(
        "UPDATE {LEDGER_TABLE} SET token = ?, outcome = ? WHERE resource = ? AND operation = ? AND outcome IS NULL"
    );
    let (resource, key) = (resource.as_str().as_bytes(), operation.as_str().as_bytes());
    let result = admitted.exec_iter(sql, (token, outcome, resource, key)).await?;
    let rows = result.affected_rows();
    result.drop_result().await?;
    match rows {
        1 => Ok(()),
        _ => Err(FenceError::Corrupt(format!("operation {operation} is not under way"))),
    }
}
