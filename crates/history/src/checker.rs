//! Takes a history record by record and says which promise is broken first.

use std::fmt;

use crate::book::Book;
use crate::promise::{Promise, Promises};
use crate::promises::{at_end, before};
use crate::record::Record;

/// A promise that a history shows to be broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// What was found.
    pub detail: String,
    /// The records that show it, by their place in the history, in order: the shortest excerpt that does.
    pub records: Vec<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is broken: {}", self.promise, self.detail)
    }
}

impl std::error::Error for Violation {}

/// What came of a whole history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Records taken.
    pub records: u64,
    /// How often each promise was looked at: none means that the history cannot show it.
    pub examined: Vec<(Promise, u64)>,
    /// Attempts that have no answer, or one that does not say: they may or may not have happened.
    pub unknown: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Checker {
    book: Book,
    promises: Promises,
    drift_holds: bool,
    records: u64,
    examined: [u64; Promise::ALL.len()],
    unanswered: i64,
}

impl Default for Checker {
    fn default() -> Self {
        Self::new(Promises::ALL)
    }
}

impl Checker {
    /// A checker of these promises.
    pub fn new(promises: Promises) -> Self {
        let examined = [0; Promise::ALL.len()];
        Self { book: Book::default(), promises, drift_holds: true, records: 0, examined, unanswered: 0 }
    }

    /// Clocks ran faster or slower than is permitted: S9 and S10, which rest on that, are not judged.
    pub fn without_drift_bound(&mut self) {
        self.drift_holds = false;
    }

    /// Takes the next record, which must not be earlier than the one before it.
    ///
    /// # Errors
    /// The promise that this record shows to be broken.
    pub fn take(&mut self, record: &Record) -> Result<(), Violation> {
        let index = self.records;
        let op = before::attempt(&self.book, record);
        for promise in before::of(record) {
            if self.judges(*promise) {
                let looked = before::check(*promise, &self.book, op, index, record)?;
                self.examined[*promise as usize] += looked;
            }
        }
        match record {
            Record::Invoke { .. } => self.unanswered += 1,
            Record::Answer { answer, .. } if *answer != crate::Answer::Unknown => self.unanswered -= 1,
            _ => {}
        }
        self.book.take(index, record);
        self.records += 1;
        Ok(())
    }

    /// What can only be said when everything was seen.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn finish(mut self) -> Result<Verdict, Violation> {
        for promise in at_end::ALL {
            if self.judges(promise) {
                self.examined[promise as usize] += at_end::check(promise, &self.book)?;
            }
        }
        let examined = Promise::ALL.into_iter().zip(self.examined).collect();
        let unknown = u64::try_from(self.unanswered).unwrap_or(0);
        Ok(Verdict { records: self.records, examined, unknown })
    }

    fn judges(&self, promise: Promise) -> bool {
        let rests_on_drift = matches!(promise, Promise::S9 | Promise::S10);
        self.promises.has(promise) && (self.drift_holds || !rests_on_drift)
    }
}
