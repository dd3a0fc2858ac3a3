//! What the triggers read: resource and token of the transaction.

use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use super::Error;
use crate::{FenceError, Grant, Kind, Rejection};

/// Puts the grant before the triggers, until this transaction ends: the same as `SET LOCAL leasehold.resource` and
/// `leasehold.token`.
///
/// # Errors
/// Rejected for a semaphore's grant, which triggers do not fence; Store.
pub async fn present(transaction: &Transaction<'_>, grant: &Grant) -> Result<(), Error> {
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
    let sql = "SELECT set_config('leasehold.resource', $1, true), set_config('leasehold.token', $2, true), \
               set_config('leasehold.mode', $3, true)";
    let (resource, token) = (grant.resource().as_str(), grant.token().to_string());
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&resource, Type::TEXT), (&token, Type::TEXT), (&mode, Type::TEXT)];
    transaction.query_typed(sql, &params).await?;
    Ok(())
}

/// A trigger's rejection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// SQLSTATE LH001.
    MissingToken(String),
    /// SQLSTATE LH002.
    Stale(String),
    /// SQLSTATE LH003.
    WrongScope(String),
}

impl Refused {
    /// The trigger's own words.
    pub fn message(&self) -> &str {
        match self {
            Self::MissingToken(message) | Self::Stale(message) | Self::WrongScope(message) => message,
        }
    }
}

/// The trigger's rejection and its own words, if the error is one.
pub fn refused(error: &tokio_postgres::Error) -> Option<Refused> {
    let error = error.as_db_error()?;
    let message = error.message().to_owned();
    match error.code().code() {
        "LH001" => Some(Refused::MissingToken(message)),
        "LH002" => Some(Refused::Stale(message)),
        "LH003" => Some(Refused::WrongScope(message)),
        _ => None,
    }
}
