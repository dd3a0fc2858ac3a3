//! Seeds one after the other.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use leasehold_sim::Options;

use crate::one;

thread_local! {
    /// The seed that this thread runs, for the message of a panic.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// An assertion of the code under test names the seed, too.
pub(crate) fn say_seed_of_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("to repeat: cargo xtask sim {}", SEED.get());
        before(panic);
    }));
}

/// Notes which seed is run now.
pub(crate) fn running(seed: u64) {
    SEED.set(seed);
}

/// Runs seeds on every processor until so many faults have happened; false at the first broken promise.
#[expect(clippy::disallowed_methods, reason = "measures how fast the simulator is; no run depends on it")]
pub(crate) fn run(options: &Options, faults: u64, seconds: u64) -> bool {
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done, failed) = (AtomicU64::new(options.seed), AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let total = Mutex::new(Total::default());
    let work = || {
        while done.load(Relaxed) < faults
            && began.elapsed().as_secs() < seconds
            && failed.load(Relaxed) == u64::MAX
        {
            let seed = next.fetch_add(1, Relaxed);
            running(seed);
            let outcome = leasehold_sim::run(&Options { seed, ..options.clone() });
            done.fetch_add(outcome.faults, Relaxed);
            if outcome.failure.is_some() {
                failed.fetch_min(seed, Relaxed);
            }
            total.lock().expect("nobody panics while counting").add(&outcome);
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner();
    if failed < u64::MAX {
        one::run_shown(&Options { seed: failed, ..options.clone() });
        one::shrunk(&Options { seed: failed, ..options.clone() });
        return false;
    }
    total.into_inner().expect("nobody panics while counting").print(
        options.seed,
        began.elapsed().as_secs_f64(),
        threads,
    );
    true
}

#[derive(Default)]
struct Total {
    seeds: u64,
    faults: u64,
    commands: u64,
    takeovers: u64,
    unknowns: u64,
    expiries: u64,
    traces: u64,
}

impl Total {
    fn add(&mut self, outcome: &leasehold_sim::Outcome) {
        self.faults += outcome.faults;
        self.commands += outcome.commands;
        self.takeovers += outcome.takeovers;
        self.unknowns += outcome.unknowns;
        self.expiries += outcome.expiries;
        // In any order: threads finish as they finish.
        self.traces = self.traces.wrapping_add(outcome.trace);
        self.seeds += 1;
    }

    fn print(&self, first: u64, took: f64, threads: usize) {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = self.commands as f64 / took / threads as f64;
        println!(
            "{} seeds from {first}: {} faults, {} commands, {} take-overs, {} unknown outcomes, {} expiries, 0 violations",
            self.seeds, self.faults, self.commands, self.takeovers, self.unknowns, self.expiries
        );
        println!(
            "{took:.1} s on {threads} threads, {rate:.0} commands a second on each; traces {:016x}",
            self.traces
        );
    }
}
