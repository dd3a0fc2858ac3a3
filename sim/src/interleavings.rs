//! Every interleaving of a small world.

use std::time::Instant;

use leasehold_sim::Mistake;
use leasehold_sim::model::{Scope, explore as look_at_all};

/// The classic mistakes that the protocol itself can show.
const PROTOCOL: [Mistake; 5] = [
    Mistake::RenewalsUnconfirmed,
    Mistake::ReproposedAfterUnknown,
    Mistake::EpochCheckApart,
    Mistake::CompactionReopens,
    Mistake::DeadOnArrival,
];

/// More steps than this are not looked at: a number is kept for each different state that they lead to, and memory ends.
pub(crate) const MOST_STEPS: usize = 4_000_000_000;

/// Looks at everything within the scope, or at so many steps of it; false if not everything was seen, a promise is broken,
/// or a deliberate mistake is not caught.
#[expect(clippy::disallowed_methods, reason = "measures how long it took; nothing depends on it")]
pub(crate) fn explore(scope: Scope, most_steps: usize) -> bool {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let explored = look_at_all(scope, threads, most_steps);
    let complete = if explored.is_complete { "completely" } else { "NOT completely" };
    println!("{scope:?}");
    println!("{} states, explored {complete}, in {:.1} s", explored.states, began.elapsed().as_secs_f64());
    for (promise, steps) in &explored.broken {
        println!("{promise} is broken after {} steps: {steps:?}", steps.len());
    }
    for good in &explored.unreached {
        println!("never reached: {good}");
    }
    let fine = explored.broken.is_empty() && explored.unreached.is_empty() && explored.is_complete;
    if scope.mistake.is_some() || !fine {
        return fine;
    }
    println!("{:<28} caught by", "mistake");
    PROTOCOL.into_iter().all(|mistake| caught(mistake, threads))
}

fn caught(mistake: Mistake, threads: usize) -> bool {
    let explored =
        look_at_all(Scope { mistake: Some(mistake), compactions: 1, ..Scope::FLOOR }, threads, MOST_STEPS);
    let first = explored.broken.iter().min_by_key(|(_, steps)| steps.len());
    match first {
        Some((promise, steps)) => println!("{:<28} {promise}, after {} steps", mistake.name(), steps.len()),
        None => println!("{:<28} NOT CAUGHT", mistake.name()),
    }
    first.is_some()
}
