//! The ledger of side effects.

use leasehold_types::RequestKey;
use rusqlite::{OptionalExtension, Transaction, params};

use super::Error;
use crate::effects::{Began, Kept};
use crate::sql::LEDGER_TABLE;
use crate::{Admitted, FenceError};

/// Notes that this grant begins an operation, and tells what is known of it. Commit before the effect.
///
/// # Errors
/// Store: roll back.
pub fn begin(admitted: &Admitted<'_, Transaction<'_>>, operation: &RequestKey) -> Result<Began, Error> {
    let resource = admitted.ask().grant().resource().as_str();
    let sql = format!("SELECT token, outcome FROM {LEDGER_TABLE} WHERE resource = ?1 AND operation = ?2");
    let values = |row: &rusqlite::Row<'_>| Ok(Kept { token: row.get(0)?, outcome: row.get(1)? });
    let kept = admitted.query_row(&sql, [resource, operation.as_str()], values).optional()?;
    let began = kept.map_or(Ok(Began::Fresh), |kept| kept.began(admitted.token()))?;
    if !matches!(began, Began::Done { .. }) {
        let token = i64::try_from(admitted.token().get()).expect("tokens are below 2^53");
        let sql = format!(
            "INSERT INTO {LEDGER_TABLE} (resource, operation, token) VALUES (?1, ?2, ?3) \
             ON CONFLICT (resource, operation) DO UPDATE SET token = excluded.token"
        );
        admitted.execute(&sql, params![resource, operation.as_str(), token])?;
    }
    Ok(began)
}

/// Notes that the operation has ended, and how.
///
/// # Errors
/// Store; or the operation was never begun, or has ended before: roll back.
pub fn end(
    admitted: &Admitted<'_, Transaction<'_>>,
    operation: &RequestKey,
    outcome: &str,
) -> Result<(), Error> {
    let resource = admitted.ask().grant().resource().as_str();
    let token = i64::try_from(admitted.token().get()).expect("tokens are below 2^53");
    let sql = format!(
        "UPDATE {LEDGER_TABLE} SET token = ?3, outcome = ?4 \
         WHERE resource = ?1 AND operation = ?2 AND outcome IS NULL"
    );
    match admitted.execute(&sql, params![resource, operation.as_str(), token, outcome])? {
        1 => Ok(()),
        _ => Err(FenceError::Corrupt(format!("operation {operation} is not under way"))),
    }
}
