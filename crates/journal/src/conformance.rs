//! The conformance suite: what every journal must show, as named checks that a single process can make.
//!
//! A journal crate writes a [`Fixture`] and calls [`run`] from its tests:
//!
//! ```
//! # use leasehold_journal::{Journal, MemoryJournal, conformance::{self, Fixture, Openers, Place}};
//! struct Memory;
//!
//! #[async_trait::async_trait]
//! impl Fixture for Memory {
//!     fn openers(&self) -> Openers {
//!         Openers::Many
//!     }
//!     async fn place(&self) -> Box<dyn Place> {
//!         Box::new(MemoryJournal::new())
//!     }
//! }
//!
//! # async fn example() {
//! conformance::run(&Memory).await.assert_passed();
//! # }
//! ```
//!
//! It shows order, fencing, replay, retries and compaction. It cannot show durability, nor that an engine keeps its word
//! over its own fail-over: those need real crashes.

mod appending;
mod copying;
mod fencing;
mod histories;
mod kit;
mod measure;
mod on_engine;
pub mod outages;
mod passwords;
mod reading;
mod small_node;
mod snapshots;
mod tls;

pub use measure::{Row, measure};
pub use on_engine::OnEngine;
pub use passwords::every_place_of_a_password;
pub use small_node::{SmallNode, fresh_claim, read_all};
pub use tls::OverTls;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;

use crate::{Journal, MemoryJournal};

/// Makes empty journals for the checks.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// Whether a second claim fences the first or is refused while the first is alive.
    fn openers(&self) -> Openers;

    /// A place where no journal is yet.
    async fn place(&self) -> Box<dyn Place>;

    /// How many random histories to try; fewer where each step costs a round trip.
    fn histories(&self) -> u64 {
        32
    }
}

/// One place for a journal; dropping it cleans up.
pub trait Place: Send + Sync {
    /// The journal there. Claims and readers made of it are dropped before the place is.
    fn journal(&self) -> &dyn Journal;
}

impl Place for MemoryJournal {
    fn journal(&self) -> &dyn Journal {
        self
    }
}

/// What a journal does with a second claim while the first is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Openers {
    /// It is given, and fences the first.
    Many,
    /// It is refused as in use.
    One,
}

/// What a check found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The check: a rule and what of it.
    pub check: &'static str,
    /// What was seen.
    pub seen: String,
}

/// What came of a run of the suite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The checks that were made, in order.
    pub checks: Vec<&'static str>,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Panics with everything that failed.
    ///
    /// # Panics
    /// A check failed.
    pub fn assert_passed(&self) {
        assert!(self.failures.is_empty(), "{self}");
    }

    /// Whether this check failed.
    pub fn failed(&self, check: &str) -> bool {
        self.failures.iter().any(|failure| failure.check == check)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} checks failed", self.failures.len(), self.checks.len())?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "  {}: {}", failure.check, failure.seen))
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<(), kit::Seen>> + Send + 'a>>;

/// One check of the suite.
struct Check {
    name: &'static str,
    run: for<'a> fn(&'a dyn Fixture) -> Running<'a>,
}

macro_rules! checks {
    ($($name:literal => $check:path),+ $(,)?) => {
        &[$(Check { name: $name, run: |fixture| Box::pin($check(fixture)) }),+]
    };
}

const CHECKS: &[Check] = checks![
    "J1 batches are kept in order" => appending::in_order,
    "J1 a gap is refused" => appending::gap_refused,
    "J1 a batch that does not follow the chain is refused" => appending::stray_refused,
    "J1 a batch that is chained in another epoch is refused" => appending::foreign_refused,
    "J2 other bytes in a taken slot are a conflict" => appending::other_bytes_conflict,
    "J3 the same bytes again are committed once" => appending::same_bytes_again,
    "J9 slots are hash-chained" => appending::hash_chain,
    "J10 a body at the limit is taken, one over it refused" => appending::limits,
    "J4 the first claim founds, later ones keep the cluster" => fencing::founding,
    "J4 an epoch is above the floor and all before it" => fencing::epochs_grow,
    "J4 an older writer is fenced, or a second one refused" => fencing::older_writer,
    "J4 a duel is lost cleanly" => fencing::lost_duel,
    "J5 the tail is that after the take-over" => fencing::tail_after_take_over,
    "J6 durability is the same at each opening" => fencing::durability,
    "J7 only the current epoch is confirmed" => fencing::confirmation,
    "J15 a beat is seen, and fenced" => fencing::beats,
    "J14 slots are read from anywhere" => reading::from_anywhere,
    "J14 a reader follows the writer" => reading::follows,
    "J8 truncated slots are said to be compacted" => snapshots::compacted,
    "J8 truncation never passes the snapshot" => snapshots::never_past_snapshot,
    "J8 a compacted slot is never created again" => snapshots::never_created_again,
    "J8 the tail survives truncation of everything" => snapshots::all_truncated,
    "J10 a chunk at the limit is taken, one over it refused" => snapshots::chunk_limit,
    "J13 a snapshot is read back" => snapshots::read_back,
    "J13 an unfinished snapshot is not seen" => snapshots::unfinished,
    "J13 a replaced snapshot is never mixed with its successor" => snapshots::replaced,
    "J13 a snapshot goes neither back nor past the tail" => snapshots::neither_back_nor_ahead,
    "J13 an older writer cannot install a snapshot" => snapshots::older_writer,
    "D12 a copy keeps cluster, epoch, slots and hashes" => copying::copy,
    "D12 a copy is refused until it is recovered" => copying::unrecovered,
    "D12 only an empty journal is filled" => copying::only_empty,
    "S8 random histories agree with a naive model" => histories::random,
];

/// Runs every check, each in a place of its own.
pub async fn run(fixture: &dyn Fixture) -> Report {
    let mut report = Report { checks: Vec::new(), failures: Vec::new() };
    for check in CHECKS {
        report.checks.push(check.name);
        if let Err(kit::Seen(seen)) = (check.run)(fixture).await {
            report.failures.push(Failure { check: check.name, seen });
        }
    }
    report
}
