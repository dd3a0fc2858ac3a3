//! PostgreSQL, with `tokio-postgres`.
//!
//! Guarantee: atomic, at every isolation level. Check and advance are one statement that holds the fence's row until
//! the transaction ends; at REPEATABLE READ and above a row that has moved since the snapshot is error 40001, which
//! means: roll back and begin again.
//!
//! A connection pooler between is no problem: everything is said inside the transaction, with unnamed statements.
//!
//! Beware: [`tokio_postgres::Transaction::commit`] answers `Ok` also when the server has rolled back because a
//! statement before it failed. Do not commit after an error.

mod columns;
pub mod ledger;
mod session;
mod table;

pub use columns::{claim_row, update_row};
pub use session::{Refused, present, refused};
pub use table::{Prepared, admit, admit_staged, claim, raise_past};

use crate::FenceError;

/// What can come of asking the fence.
pub type Error = FenceError<tokio_postgres::Error>;
