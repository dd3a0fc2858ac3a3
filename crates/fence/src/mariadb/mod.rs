//! MariaDB and MySQL, with `mysql_async`.
//!
//! Guarantee: atomic, at every isolation level, for InnoDB tables. Check and advance are one `UPDATE`, which reads the
//! newest row and holds it until the transaction ends; nothing is decided from a consistent read, which at REPEATABLE
//! READ (the default) shows the past.
//!
//! The first write of a fence makes its row. Two first writes at the same time can deadlock on the gap in the index;
//! the loser gets error 1213 and begins again. [`claim`] ahead of time avoids it.

mod columns;
pub mod ledger;
mod session;
mod table;

pub use columns::{claim_row, update_row};
pub use session::{Refused, present, refused, withdraw};
pub use table::{admit, admit_staged, claim, raise_past};

use crate::FenceError;

/// What can come of asking the fence.
pub type Error = FenceError<mysql_async::Error>;
