//! What the triggers read: resource and token of the session.

use mysql_async::prelude::Queryable;
use mysql_async::{Transaction, params};

use super::Error;
use crate::{FenceError, Grant, Kind, Rejection};

/// Puts the grant before the triggers. The variables belong to the connection, not to the transaction: call
/// [`withdraw`] before the commit. (`mysql_async`'s pool also resets a connection before another uses it.)
///
/// # Errors
/// Rejected for a semaphore's grant, which triggers do not fence; Store.
pub async fn present(transaction: &mut Transaction<'_>, grant: &Grant) -> Result<(), Error> {
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
    let sql = "SET @leasehold_resource = :resource, @leasehold_token = :token, @leasehold_mode = :mode";
    let resource = grant.resource().as_str();
    transaction
        .exec_drop(sql, params! { "resource" => resource, "token" => grant.token().get(), mode })
        .await?;
    Ok(())
}

/// Takes the grant away again.
///
/// # Errors
/// Store: roll back and close the connection.
pub async fn withdraw(connection: &mut impl Queryable) -> Result<(), Error> {
    let sql = "SET @leasehold_resource = NULL, @leasehold_token = NULL, @leasehold_mode = NULL";
    connection.query_drop(sql).await?;
    Ok(())
}

/// A trigger's rejection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// SQLSTATE 45001.
    MissingToken(String),
    /// SQLSTATE 45002.
    Stale(String),
    /// SQLSTATE 45003.
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
pub fn refused(error: &mysql_async::Error) -> Option<Refused> {
    let mysql_async::Error::Server(error) = error else { return None };
    let message = error.message.clone();
    match error.state.as_str() {
        "45001" => Some(Refused::MissingToken(message)),
        "45002" => Some(Refused::Stale(message)),
        "45003" => Some(Refused::WrongScope(message)),
        _ => None,
    }
}
