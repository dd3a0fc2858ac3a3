//! Which promises a record can break, as seen before it is taken in.

use super::{Check, clients, journal};
use crate::book::{Book, Op};
use crate::promise::Promise;
use crate::record::Record;

/// The promises that a record of this kind can break.
pub(crate) fn of(record: &Record) -> &'static [Promise] {
    use Promise::{S1, S2, S3, S4, S5, S7, S8, S9, S11, S12, S13, S14, S17, S18, S19};
    match record {
        Record::Answer { .. } => &[S17, S13, S2, S3, S5, S7, S9, S11, S12, S19],
        Record::Fence { .. } => &[S4],
        Record::Commit { .. } => &[S18, S8, S7, S2, S1, S9, S12],
        Record::Event { .. } => &[S14],
        _ => &[],
    }
}

/// The attempt that a record answers, unless it was answered before.
pub(crate) fn attempt<'a>(book: &'a Book, record: &Record) -> Option<&'a Op> {
    match record {
        Record::Answer { op, .. } => book.ops.get(op),
        _ => None,
    }
}

/// Asks the function of one promise. `op` is the [`attempt`] that an answer is about.
pub(crate) fn check(promise: Promise, book: &Book, op: Option<&Op>, index: u64, record: &Record) -> Check {
    match (promise, record) {
        (Promise::S1, Record::Commit { changes, .. }) => journal::holds_are_disjoint(book, index, changes),
        (Promise::S2, Record::Commit { changes, .. }) => journal::tokens_grow(book, index, changes),
        (Promise::S7, Record::Commit { changes, .. }) => journal::granted_once(book, index, changes),
        (Promise::S8, Record::Commit { slot, epoch, prev, .. }) => {
            journal::one_chain(book, index, (*slot, *epoch, *prev))
        }
        (Promise::S9, Record::Commit { at, changes, .. }) => {
            journal::no_early_expiry(book, index, *at, changes)
        }
        (Promise::S12, Record::Commit { changes, .. }) => journal::releases_were_asked(book, index, changes),
        (Promise::S18, Record::Commit { epoch, .. }) => journal::regression_is_noticed(book, index, *epoch),
        (Promise::S14, Record::Event { stream, slot, n, .. }) => {
            journal::events_have_no_gap(book, index, stream, (*slot, *n))
        }
        (Promise::S4, Record::Fence { fence, token, admitted, .. }) => {
            clients::fences_never_go_back(book, index, fence, *token, *admitted)
        }
        (promise, Record::Answer { at, epoch, answer, .. }) => {
            let Some(op) = op else { return Ok(0) };
            match promise {
                Promise::S2 => clients::tokens_are_of_one_lease(book, op, index, answer),
                Promise::S3 => clients::tokens_follow_asking(op, index, answer),
                Promise::S5 => clients::nothing_told_is_lost(book, op, index, *at, answer),
                Promise::S7 => clients::told_once(book, op, index, answer),
                Promise::S9 => clients::no_promise_after_expiry(book, op, index, answer),
                Promise::S11 => clients::reads_are_current(book, op, index, (*at, *epoch), answer),
                Promise::S12 => clients::released_token_is_its_own(book, op, index, answer),
                Promise::S13 => clients::nothing_comes_back(book, op, index, answer),
                Promise::S17 => clients::replaced_nodes_are_silent(book, op, index, *epoch, answer),
                Promise::S19 => clients::audit_numbers_grow(op, index, answer),
                _ => Ok(0),
            }
        }
        _ => Ok(0),
    }
}
