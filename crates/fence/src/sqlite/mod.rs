//! SQLite, with `rusqlite`.
//!
//! Guarantee: atomic. The check is in the same transaction as the write, and SQLite has one writer at a time. A
//! transaction that began by reading and meets another writer gets `SQLITE_BUSY`; begin with `BEGIN IMMEDIATE`
//! ([`rusqlite::TransactionBehavior::Immediate`]) and it waits instead.

mod columns;
pub mod ledger;
mod session;
mod table;

pub use columns::{claim_row, update_row};
pub use session::{present, refused, withdraw};
pub use table::{admit, admit_staged, claim, raise_past};

use crate::FenceError;

/// What can come of asking the fence.
pub type Error = FenceError<rusqlite::Error>;
