//! The gate: every deliberate mistake must be caught, one of the nine or not. Each is run in a process of its own, since an
//! assertion of the code under test may end it, which is one way of being caught.

use std::process::Command;
use std::thread;

use leasehold_history::Promise;
use leasehold_sim::{Mistake, Options};

use crate::many;

/// How many seeds a mistake is given. A mistake that is caught costs no more than the seeds it needs, most of them one, none
/// more than a few hundred: so many more that a change of the drawn runs leaves nothing to luck.
pub(crate) const SEEDS: u64 = 4_000;

/// A mistake, and the promise that caught it with the number of seeds that it took.
type Tried = (Mistake, Option<(String, u64)>);

/// Promises that the simulator judges beside those of the history checker.
const INNER: [&str; 7] = ["S15", "table", "L2", "L3", "L5", "L6", "L8"];

/// Promises without which nothing slips through where the journal is seen, and why: they say in another way what others say
/// too. A history without commits needs them; `crates/history/tests` has one for each that it alone breaks.
const ECHOES: [(&str, &str); 10] = [
    ("S1", "two holders need a slot that should not be there: S8, S14"),
    ("S2", "a token that repeats is not the committed one: S5"),
    ("S3", "a token out of order is not the committed one: S5"),
    ("S5", "what was not committed is missed by watchers (S14) or by its holder (S12)"),
    ("S7", "a second grant needs a slot that should not be there: S8"),
    ("S9", "whoever is ended early meets the successor: S10"),
    ("S13", "what comes back was promised after its end: S9"),
    ("S18", "lost slots are filled again: S8"),
    ("L6", "who is ended while renewing was promised more: S9"),
    ("table", "no build has a mistake in the table: see its unit tests and cargo-mutants"),
];

/// Runs seeds with one mistake until a promise breaks, and prints which one and after how many.
pub(crate) fn catch(options: &Options, seeds: u64) -> bool {
    for seed in options.seed..options.seed + seeds {
        many::running(seed);
        if let Some(failure) = leasehold_sim::run(&Options { seed, ..options.clone() }).failure {
            println!("{} {}", failure.promise, seed - options.seed + 1);
            return true;
        }
    }
    false
}

/// In which worlds a mistake is looked for, where the usual ones seldom show it. To trust an old epoch shows only where two
/// answers to one client overtake each other across a take-over: in one of about 600 usual seeds.
fn world(mistake: Mistake) -> &'static [&'static str] {
    if mistake == Mistake::OldEpochsTrusted { &["--overtaking"] } else { &[] }
}

/// How a mistake was caught: by which promise, after how many seeds. `None` if it was not.
fn caught(mistake: Mistake, off: Option<&str>, seeds: u64) -> Option<(String, u64)> {
    let own = std::env::current_exe().expect("this program has a file");
    let mut command = Command::new(own);
    command.args(["--catch", "--mistake", mistake.name(), "--seeds", &seeds.to_string()]);
    command.args(world(mistake));
    if let Some(off) = off {
        command.args(["--without", off]);
    }
    let output = command.output().expect("this program can be started again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace();
    match (words.next(), words.next().and_then(|count| count.parse().ok())) {
        (Some(promise), Some(count)) => Some((promise.to_owned(), count)),
        _ if output.status.code().is_none() || output.status.code() == Some(101) => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let seed = errors
                .split("cargo xtask sim ")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
            Some(("an assertion".to_owned(), seed.map_or(0, |seed: u64| seed + 1)))
        }
        _ => None,
    }
}

/// All mistakes, and how each was caught.
fn all_caught(seeds: u64) -> Vec<Tried> {
    let all: Vec<Mistake> = Mistake::ALL.iter().map(|(mistake, _)| *mistake).collect();
    run(&all, None, seeds)
}

/// These mistakes with this promise off, on two threads.
fn run(mistakes: &[Mistake], off: Option<&str>, seeds: u64) -> Vec<Tried> {
    let half = mistakes.len().div_ceil(2).max(1);
    thread::scope(|scope| {
        let halves: Vec<_> = mistakes
            .chunks(half)
            .map(|mistakes| {
                let run = move || {
                    mistakes
                        .iter()
                        .map(|mistake| (*mistake, caught(*mistake, off, seeds)))
                        .collect::<Vec<_>>()
                };
                scope.spawn(run)
            })
            .collect();
        halves.into_iter().flat_map(|half| half.join().expect("a gate does not panic")).collect()
    })
}

/// Prints the table; false if one was not caught.
pub(crate) fn table(seeds: u64) -> bool {
    println!("{:<28} {:<14} seeds needed", "mistake", "caught by");
    let all = all_caught(seeds);
    for (number, (mistake, caught)) in all.iter().enumerate() {
        if number == Mistake::CLASSIC {
            println!("beyond the nine:");
        }
        match caught {
            Some((promise, count)) => println!("{:<28} {promise:<14} {count}", mistake.name()),
            None => println!("{:<28} {:<14} not in {seeds}", mistake.name(), "NOT CAUGHT"),
        }
    }
    let nine = count(&all[..Mistake::CLASSIC]);
    println!("{nine} of {} classic mistakes caught, within {seeds} seeds each", Mistake::CLASSIC);
    println!("{} of {} mistakes caught", count(&all), all.len());
    count(&all) == all.len()
}

fn count(all: &[Tried]) -> usize {
    all.iter().filter(|(_, caught)| caught.is_some()).count()
}

/// Prints, for each promise, which mistakes it is the first to catch, and what becomes of them when it is switched off:
/// they slip through, or another promise catches them later. A run is the same up to the first broken promise, whichever
/// are judged; so whatever another promise catches first stays caught without this one, and is not run again.
///
/// False if a mistake was not caught at all, or if nothing slips through without a promise that is no echo of others.
pub(crate) fn matrix(seeds: u64) -> bool {
    let all = all_caught(seeds);
    println!("{:<8} catches first, and what becomes of that without it, within {seeds} seeds", "promise");
    let judged = Promise::ALL.iter().map(ToString::to_string);
    let needed = judged.chain(INNER.map(str::to_owned)).map(|promise| is_needed(&promise, &all, seeds));
    // Each of them is looked at, whatever the others are.
    needed.fold(count(&all) == all.len(), |so_far, needed| so_far && needed)
}

/// Prints the line of one promise; whether it is needed, or said to be an echo.
fn is_needed(promise: &str, all: &[Tried], seeds: u64) -> bool {
    let is_first = |caught: &Option<(String, u64)>| caught.as_ref().is_some_and(|(by, _)| by == promise);
    let own: Vec<Mistake> =
        all.iter().filter(|(_, caught)| is_first(caught)).map(|(mistake, _)| *mistake).collect();
    let without = run(&own, Some(promise), seeds);
    let mut told: Vec<String> = without.iter().map(shown_without).collect();
    let slips = without.iter().any(|(_, caught)| caught.is_none());
    let echo = ECHOES.iter().find(|(name, _)| *name == promise).map(|(_, why)| *why);
    told.extend(echo.filter(|_| !slips).map(|why| format!("nothing slips through: {why}")));
    if told.is_empty() {
        told.push("NOTHING NEEDS IT".to_owned());
    }
    println!("{promise:<8} {}", told.join("; "));
    slips || echo.is_some()
}

fn shown_without((mistake, caught): &Tried) -> String {
    match caught {
        Some((by, count)) => format!("{}: {by} after {count}", mistake.name()),
        None => format!("{}: slips through", mistake.name()),
    }
}
