//! Histories: what clients asked and were told, what they believed, what fences decided, what a journal committed. And a
//! checker that says whether every promise held.
//!
//! A history is a list of [`Record`]s in the order of time; in a file, one JSON object a line (`docs/reference/history.md`
//! describes it for those who write their own). [`Checker`] takes them one by one, keeps what it needs in a [`Book`], and
//! asks one function for each [`Promise`]. The simulator feeds it directly, drills and users by a file, [`check_file`].
//!
//! It takes O(n log n) time, and never guesses: an attempt without an answer may or may not have happened, and what a
//! history does not show is not judged ([`Verdict::examined`] says what was).
//!
//! It knows nothing of the table, the network or a clock, and does not need the service to run.

mod book;
mod checker;
mod file;
mod fold;
mod lease;
mod promise;
mod promises;
mod record;

pub use book::Book;
pub use checker::{Checker, Verdict, Violation};
pub use file::{FileError, FileVerdict, Writer, check_file, check_lines};
pub use promise::{Promise, Promises};
pub use record::{Answer, At, Call, Change, Hash, Id, Mode, Record};
