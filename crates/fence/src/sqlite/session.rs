//! What the triggers read: resource and token of the transaction.

use rusqlite::{Connection, Transaction, params};

use super::Error;
use crate::{FenceError, Grant, Kind, Rejection};

/// Puts the grant before the triggers, for this transaction. Call [`withdraw`] before the commit: the row would stay
/// for the next writer. A rollback takes it away too.
///
/// # Errors
/// Rejected for a semaphore's grant, which triggers do not fence; Store.
pub fn present(transaction: &Transaction<'_>, grant: &Grant) -> Result<(), Error> {
    let mode = match grant.kind() {
        Kind::Exclusive => "exclusive",
        Kind::Shared => "shared",
        Kind::Permit(_) => {
            let resource = grant.resource().clone();
            return Err(FenceError::Rejected(Rejection::WrongScope {
                presented: resource.clone(),
                guard: resource,
            }));
        }
    };
    let token = i64::try_from(grant.token().get()).expect("tokens are below 2^53");
    transaction.execute(
        "INSERT OR REPLACE INTO leasehold_session (one, resource, token, mode) VALUES (1, ?1, ?2, ?3)",
        params![grant.resource().as_str(), token, mode],
    )?;
    Ok(())
}

/// Takes the grant away again.
///
/// # Errors
/// Store: roll back.
pub fn withdraw(connection: &Connection) -> Result<(), Error> {
    connection.execute("DELETE FROM leasehold_session", [])?;
    Ok(())
}

/// The trigger's own words, if the error is a trigger's rejection.
pub fn refused(error: &rusqlite::Error) -> Option<&str> {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) if message.starts_with("leasehold: ") => {
            Some(message)
        }
        _ => None,
    }
}
