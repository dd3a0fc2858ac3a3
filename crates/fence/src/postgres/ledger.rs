//! The ledger of side effects.

use leasehold_types::RequestKey;
use tokio_postgres::Transaction;

use super::Error;
use crate::effects::{Began, Kept};
use crate::sql::LEDGER_TABLE;
use crate::{Admitted, FenceError};

/// Notes that this grant begins an operation, and tells what is known of it. Commit before the effect.
///
/// # Errors
/// Store: roll back.
pub async fn begin(admitted: &Admitted<'_, Transaction<'_>>, operation: &RequestKey) -> Result<Began, Error> {
    let (resource, operation) = (admitted.ask().grant().resource().as_str(), operation.as_str());
    let sql = format!(
        "SELECT token, outcome FROM {LEDGER_TABLE} WHERE resource = $1 AND operation = $2 FOR UPDATE"
    );
    let began = match admitted.query_opt(&sql, &[&resource, &operation]).await? {
        Some(row) => Kept { token: row.try_get(0)?, outcome: row.try_get(1)? }.began(admitted.token())?,
        None => Began::Fresh,
    };
    if !matches!(began, Began::Done { .. }) {
        let token = i64::try_from(admitted.token().get()).expect("tokens are below 2^53");
        let sql = format!(
            "INSERT INTO {LEDGER_TABLE} (resource, operation, token) VALUES ($1, $2, $3) \
             ON CONFLICT (resource, operation) DO UPDATE SET token = EXCLUDED.token"
        );
        admitted.execute(&sql, &[&resource, &operation, &token]).await?;
    }
    Ok(began)
}

/// Notes that the operation has ended, and how.
///
/// # Errors
/// Store; or the operation was never begun, or has ended before: roll back.
pub async fn end(
    admitted: &Admitted<'_, Transaction<'_>>,
    operation: &RequestKey,
    outcome: &str,
) -> Result<(), Error> {
    let (resource, key) = (admitted.ask().grant().resource().as_str(), operation.as_str());
    let token = i64::try_from(admitted.token().get()).expect("tokens are below 2^53");
    let sql = format!(
        "UPDATE {LEDGER_TABLE} SET token = $3, outcome = $4 \
         WHERE resource = $1 AND operation = $2 AND outcome IS NULL"
    );
    match admitted.execute(&sql, &[&resource, &key, &token, &outcome]).await? {
        1 => Ok(()),
        _ => Err(FenceError::Corrupt(format!("operation {operation} is not under way"))),
    }
}
