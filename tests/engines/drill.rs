//! How often, from which seed, and how to repeat it: `cargo xtask drill` sets the variables.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_tests::Seed;

/// How often a mistake may go unseen.
const TRIES: u64 = 10;

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

    /// A drill that cannot fail proves nothing: what a mistake did must be seen. Whether a fault meets a mistake is a
    /// matter of chance, so there are several tries, each from a seed of its own.
    pub(crate) fn finds_out(mistake: &str, rule: &str, mut violations: impl FnMut(&mut Seed) -> Vec<String>) {
        let seed = Seed::new(1_618);
        let found = (0..TRIES).find_map(|attempt| {
            let mut seed = seed.part(attempt);
            // A mistake can also bring all nodes to a stop, and the drill with them: then nothing was seen.
            let seen = catch_unwind(AssertUnwindSafe(|| violations(&mut seed))).unwrap_or_default();
            seen.into_iter().find(|text| text.starts_with(rule))
        });
        println!("found, as it must be: {found:?}");
        assert!(found.is_some(), "nobody noticed what {mistake} did, in {TRIES} tries");
    }
}
