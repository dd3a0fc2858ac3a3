//! The gate: every deliberate mistake must be caught. Each is run in a process of its own, since an assertion of the code
//! under test may end it, which is one way of being caught.

use std::process::Command;
use std::thread;

use leasehold_history::Promise;
use leasehold_sim::{Mistake, Options};

use crate::many;

/// Promises that the simulator judges beside those of the history checker.
const INNER: [&str; 7] = ["S15", "table", "L2", "L3", "L5", "L6", "L8"];

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

/// How many times as many seeds a mistake is given. To trust an old epoch shows only where two answers to one client overtake
/// each other across a take-over: in one of about 600 seeds (5 of 3,000), so that 400 would leave it to luck.
fn rarity(mistake: Mistake) -> u64 {
    if mistake == Mistake::OldEpochsTrusted { 8 } else { 1 }
}

/// How a mistake was caught: by which promise, after how many seeds. `None` if it was not.
fn caught(mistake: Mistake, off: Option<&str>, seeds: u64) -> Option<(String, u64)> {
    let own = std::env::current_exe().expect("this program has a file");
    let mut command = Command::new(own);
    let seeds = seeds * rarity(mistake);
    command.args(["--catch", "--mistake", mistake.name(), "--seeds", &seeds.to_string()]);
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
fn all_caught(seeds: u64) -> Vec<(Mistake, Option<(String, u64)>)> {
    let all: Vec<Mistake> = Mistake::ALL.iter().map(|(mistake, _)| *mistake).collect();
    run(&all, None, seeds)
}

/// These mistakes with this promise off, on two threads.
fn run(mistakes: &[Mistake], off: Option<&str>, seeds: u64) -> Vec<(Mistake, Option<(String, u64)>)> {
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

/// Prints the table; false if one of the nine was not caught.
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
    let nine = all.iter().take(Mistake::CLASSIC).filter(|(_, caught)| caught.is_some()).count();
    println!("{nine} of {} classic mistakes caught, within {seeds} seeds each", Mistake::CLASSIC);
    nine == Mistake::CLASSIC
}

/// Prints, for each promise, which mistakes it is the first to catch, and what becomes of them when it is switched off:
/// they slip through, or another promise catches them later. A run is the same up to the first broken promise, whichever
/// are judged; so whatever another promise catches first stays caught without this one, and is not run again.
pub(crate) fn matrix(seeds: u64) -> bool {
    let all = all_caught(seeds);
    println!("{:<8} catches first, and what becomes of that without it, within {seeds} seeds", "promise");
    let judged = Promise::ALL.iter().map(ToString::to_string);
    for promise in judged.chain(INNER.map(str::to_owned)) {
        let own: Vec<Mistake> = all
            .iter()
            .filter(|(_, caught)| caught.as_ref().is_some_and(|(by, _)| *by == promise))
            .map(|(mistake, _)| *mistake)
            .collect();
        let without = |(mistake, caught): (Mistake, Option<(String, u64)>)| match caught {
            Some((by, count)) => format!("{}: {by} after {count}", mistake.name()),
            None => format!("{}: slips through", mistake.name()),
        };
        let told: Vec<String> = run(&own, Some(&promise), seeds).into_iter().map(without).collect();
        println!("{promise:<8} {}", if told.is_empty() { "nothing".to_owned() } else { told.join("; ") });
    }
    all.iter().all(|(_, caught)| caught.is_some())
}
