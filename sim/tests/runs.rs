//! The simulator itself: it repeats, it finds nothing in what is right, and it finds what is wrong.

use leasehold_sim::model::{Scope, explore};
use leasehold_sim::{Mistake, Options, run};

/// First of all: without this no seed is evidence.
#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [0, 3, 11] {
        let (one, other) = (run(&Options::of(seed)), run(&Options::of(seed)));
        assert_eq!(
            (one.trace, one.faults, one.commands),
            (other.trace, other.faults, other.commands),
            "seed {seed}"
        );
        let kept = run(&Options { keep: true, ..Options::of(seed) });
        assert_eq!(kept.trace, one.trace, "keeping the records changes nothing, seed {seed}");
    }
    assert_ne!(run(&Options::of(1)).trace, run(&Options::of(2)).trace);
}

/// A few seeds as any test run has them; `cargo xtask sim` has as many as one likes.
#[test]
fn seeds_keep_every_promise() {
    for seed in 100..108 {
        let outcome = run(&Options::of(seed));
        assert_eq!(outcome.failure, None, "to repeat: cargo xtask sim {seed}");
        assert!(outcome.commands > 50 && outcome.faults > 3, "seed {seed} did next to nothing: {outcome:?}");
    }
}

/// Each of these was a bug, or a mistake of a checker, found by its seed.
#[test]
fn seeds_that_found_something_stay_well() {
    for seed in [13, 45, 85, 98, 396, 409, 5_449, 6_933, 916_518, 7_019_547] {
        assert_eq!(run(&Options::of(seed)).failure, None, "to repeat: cargo xtask sim {seed}");
    }
    let seed = 5_010_387;
    let overtaking = run(&Options { overtaking: true, ..Options::of(seed) });
    assert_eq!(overtaking.failure, None, "to repeat: cargo xtask sim {seed} --overtaking");
}

#[test]
fn mistakes_are_caught_by_the_promises_that_they_break() {
    let expected = [
        (Mistake::FenceAdmitsAll, "S4"),
        (Mistake::ReadsFromMemory, "S11"),
        (Mistake::EventDropped, "S14"),
        (Mistake::WrongTokenReleased, "S12"),
        (Mistake::NobodyTakesOver, "L3"),
    ];
    for (mistake, promise) in expected {
        let failures =
            (0..12).filter_map(|seed| run(&Options { mistake: Some(mistake), ..Options::of(seed) }).failure);
        let first = failures.map(|failure| failure.promise).next();
        assert_eq!(first.as_deref(), Some(promise), "{mistake:?}");
    }
}

#[test]
fn a_small_world_keeps_every_promise_in_every_interleaving() {
    let tiny = Scope { ticks: 1, takeovers: 1, crashes: 0, pauses: 0, compactions: 0, ..Scope::FLOOR };
    let explored = explore(tiny, 1, 300_000);
    assert_eq!(explored.broken, [], "{} states", explored.states);
    let caught = explore(Scope { mistake: Some(Mistake::EpochCheckApart), ..tiny }, 1, 300_000);
    assert_ne!(caught.broken, []);
}
