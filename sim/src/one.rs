//! One seed, and its story if it fails.

use std::path::Path;

use leasehold_sim::{Options, shrink};

/// Records shown before the one that breaks a promise, when no excerpt says more.
const CONTEXT: usize = 12;

/// Runs one seed; false if a promise was broken.
pub(crate) fn run_shown(options: &Options) -> bool {
    let outcome = leasehold_sim::run(&Options { keep: true, ..options.clone() });
    let Some(failure) = &outcome.failure else {
        println!(
            "seed {}: {} commands, {} faults, {} take-overs, {} unknown outcomes, {} expiries; trace {:016x}",
            options.seed,
            outcome.commands,
            outcome.faults,
            outcome.takeovers,
            outcome.unknowns,
            outcome.expiries,
            outcome.trace
        );
        return true;
    };
    println!("seed {}: {} is broken: {}", options.seed, failure.promise, failure.detail);
    let places: Vec<usize> =
        failure.records.iter().filter_map(|place| usize::try_from(*place).ok()).collect();
    let last = outcome.records.len().saturating_sub(CONTEXT);
    let shown: Vec<usize> = if places.is_empty() { (last..outcome.records.len()).collect() } else { places };
    for place in shown {
        if let Some(record) = outcome.records.get(place) {
            println!("  {place:>7} {record:?}");
        }
    }
    false
}

/// Runs one seed; if it fails, shrinks it and shows what is left.
pub(crate) fn run(options: &Options, history: Option<&Path>) -> bool {
    if let Some(Err(error)) = history.map(|path| write(options, path)) {
        println!("the history was not written: {error}");
        return false;
    }
    if run_shown(options) {
        return true;
    }
    shrunk(options);
    false
}

fn write(options: &Options, path: &Path) -> std::io::Result<()> {
    let writer = leasehold_history::Writer::create(path)?;
    let outcome = leasehold_sim::run(&Options { keep: true, ..options.clone() });
    outcome.records.iter().try_for_each(|record| writer.write(record))
}

/// Shrinks a failing run and prints the one command that repeats it.
pub(crate) fn shrunk(options: &Options) {
    let smallest = shrink(options);
    println!("\nto repeat: {}", smallest.command());
    run_shown(&smallest);
}
