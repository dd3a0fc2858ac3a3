//! One run, and what came of it.

use leasehold_history::Record;

use crate::disk::DiskWorld;
use crate::options::Options;
use crate::world::{Failure, World};

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What broke, if anything did.
    pub failure: Option<Failure>,
    /// A hash of everything that happened.
    pub trace: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Commands that nodes took.
    pub commands: u64,
    /// How often a node took over.
    pub takeovers: u64,
    /// Outcomes that were unknown at first.
    pub unknowns: u64,
    /// Lives that ended by time.
    pub expiries: u64,
    /// The history, if it was kept.
    pub records: Vec<Record>,
}

/// Runs one seed to its end.
pub fn run(options: &Options) -> Outcome {
    if options.is_disk() {
        return run_disk(options);
    }
    let mut world = World::new(options);
    world.run();
    Outcome {
        failure: world.failure.clone(),
        trace: world.trace.hash(),
        faults: world.faults,
        commands: world.commands,
        takeovers: world.takeovers,
        unknowns: world.unknowns,
        expiries: world.expiries,
        records: world.into_records(),
    }
}

fn run_disk(options: &Options) -> Outcome {
    let mut world = DiskWorld::new(options);
    world.run();
    Outcome {
        failure: world.failure,
        trace: world.trace.hash(),
        faults: world.faults,
        commands: world.commands,
        takeovers: 0,
        unknowns: 0,
        expiries: 0,
        records: world.records.unwrap_or_default(),
    }
}

/// The smallest variant of a failing run that still fails: without faults of messages if possible, then with as few
/// drawn faults as possible.
pub fn shrink(options: &Options) -> Options {
    let fails = |options: &Options| run(options).failure.is_some();
    let calm = Options { calm_network: true, ..options.clone() };
    let mut smallest = if fails(&calm) { calm } else { options.clone() };
    let few = std::iter::once(0).chain((0..10).map(|power| 1 << power));
    let fewer = few.map(|most| Options { most_faults: Some(most), ..smallest.clone() }).find(fails);
    if let Some(fewer) = fewer {
        smallest = fewer;
    }
    smallest
}
