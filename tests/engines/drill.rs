//! How often, from which seed, and how to repeat it: `cargo xtask drill` sets the variables.

use std::time::Duration;

use leasehold_tests::Seed;

/// One run of a drill.
pub(crate) struct Drill {
    /// How many faults.
    pub(crate) times: u64,
    /// Where chance begins.
    pub(crate) seed: Seed,
}

impl Drill {
    /// The floor, unless `LEASEHOLD_TIMES` and `LEASEHOLD_SEED` say otherwise; prints the line that repeats the run.
    pub(crate) fn begin(name: &str, engine: &str, floor: u64) -> Self {
        let times = std::env::var("LEASEHOLD_TIMES").map_or(floor, |text| text.parse().unwrap());
        let seed = Seed::from_env(2_718);
        println!(
            "to repeat: cargo xtask drill {name} --engine {engine} --times {times} --seed {}",
            seed.number()
        );
        Self { times, seed }
    }

    /// Whether every single measurement must be within what is promised: in a drill by hand. In the test run, beside
    /// other tests on the same two cores, half of them must, and all within five times as much.
    fn is_strict() -> bool {
        std::env::var_os("LEASEHOLD_STRICT").is_some()
    }

    /// Checks what was measured against what is promised.
    pub(crate) fn hold_to(promised: Duration, measured: &[Duration]) {
        let within = measured.iter().filter(|time| **time <= promised).count();
        let bearable = measured.iter().all(|time| *time <= 5 * promised);
        let kept = if Self::is_strict() {
            within == measured.len()
        } else {
            bearable && 2 * within >= measured.len()
        };
        assert!(kept, "promised within {promised:?}, measured {measured:?}");
    }
}
