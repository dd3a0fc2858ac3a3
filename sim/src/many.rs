//! Seeds one after the other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use leasehold_sim::Options;

use crate::one;

/// The seed that is being run, for the message of a panic.
static SEED: AtomicU64 = AtomicU64::new(0);

/// An assertion of the code under test names the seed, too.
pub(crate) fn say_seed_of_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        eprintln!("to repeat: cargo xtask sim {}", SEED.load(Relaxed));
        before(panic);
    }));
}

/// Notes which seed is run now.
pub(crate) fn running(seed: u64) {
    SEED.store(seed, Relaxed);
}

/// Runs seeds until so many faults have happened; false at the first broken promise.
#[expect(clippy::disallowed_methods, reason = "measures how fast the simulator is; no run depends on it")]
pub(crate) fn run(options: &Options, faults: u64, seconds: u64) -> bool {
    let began = Instant::now();
    let (mut seed, mut total) = (options.seed, Total::default());
    while total.faults < faults && began.elapsed().as_secs() < seconds {
        running(seed);
        let outcome = leasehold_sim::run(&Options { seed, ..options.clone() });
        if outcome.failure.is_some() {
            one::run_shown(&Options { seed, ..options.clone() });
            one::shrunk(&Options { seed, ..options.clone() });
            return false;
        }
        total.add(&outcome);
        seed += 1;
    }
    let took = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = total.commands as f64 / took;
    println!(
        "{} seeds from {}: {} faults, {} commands, {} take-overs, {} unknown outcomes, {} expiries, 0 violations",
        seed - options.seed,
        options.seed,
        total.faults,
        total.commands,
        total.takeovers,
        total.unknowns,
        total.expiries
    );
    println!("{took:.1} s on one core, {rate:.0} commands a second; traces {:016x}", total.traces);
    true
}

#[derive(Default)]
struct Total {
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
        self.traces = self.traces.rotate_left(1) ^ outcome.trace;
    }
}
