//! One function for each promise. Each takes the book of everything before a record, and the record.

pub(crate) mod at_end;
pub(crate) mod before;
mod clients;
mod journal;

use crate::checker::Violation;
use crate::lease::Mark;
use crate::promise::Promise;

/// How often the promise was looked at, or how it is broken.
pub(crate) type Check = Result<u64, Violation>;

pub(crate) fn broken(promise: Promise, marks: &[Mark], index: u64, detail: String) -> Violation {
    let mut records: Vec<u64> = marks.iter().map(|mark| mark.index).chain([index]).collect();
    records.sort_unstable();
    records.dedup();
    Violation { promise, detail, records }
}
