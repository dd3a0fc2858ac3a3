//! `cargo xtask drill`: faults by hand, longer or harder than in the test run.

use std::process::ExitCode;

use crate::engines;
use crate::parts::Parts;
use crate::run::Line;
use crate::test::{release, whole};

/// One of them.
struct Drill {
    name: &'static str,
    /// What its one argument means.
    argument: &'static str,
    about: &'static str,
    /// How the tests are told the argument.
    variable: &'static str,
    default: &'static str,
    line: fn() -> Line,
}

const DRILLS: &[Drill] = &[
    Drill {
        name: "kill9",
        argument: "KILLS",
        about: "kill -9 of a server under load, and a look at what it had acknowledged",
        variable: "LEASEHOLD_KILLS",
        default: "300",
        line: || whole("e2e", &["kill9::".into()]),
    },
    Drill {
        name: "power",
        argument: "IMAGES",
        about: "power cuts: images of the embedded journal's disk with any part of what was not synced",
        variable: "LEASEHOLD_CRASH_IMAGES",
        default: "1000000",
        line: || Line::cargo("test --release -p leasehold-journal-wal --test crash_images -- --nocapture"),
    },
    Drill {
        name: "full-disk",
        argument: "SEED",
        about: "a full disk, and a server that stands still for three ttls, on the real binary (F5)",
        variable: "LEASEHOLD_SEED",
        default: "1",
        line: || whole("e2e", &["full_disk::".into(), "stall::".into()]),
    },
    Drill {
        name: "failing-disk",
        argument: "SEED",
        about: "each write, sync and rename of the embedded journal fails once, on a simulated disk (F5)",
        variable: "LEASEHOLD_SEED",
        default: "1",
        line: || Line::cargo("test -p leasehold-journal-wal --test faults -- --nocapture"),
    },
    Drill {
        name: "clock-steps",
        argument: "SECONDS",
        about: "the wall clock steps by an hour all the time, the other clocks with every restart (F10)",
        variable: "LEASEHOLD_SECONDS",
        default: "600",
        line: || whole("e2e", &["clock_steps::".into()]),
    },
    Drill {
        name: "retries",
        argument: "CALLS",
        about: "a proxy loses half of the answers: what is asked again happens once (F11)",
        variable: "LEASEHOLD_CALLS",
        default: "1000000",
        line: || whole("e2e", &["retries::".into()]),
    },
    Drill {
        name: "watchers",
        argument: "EVENTS",
        about: "watchers that read late, or hang up and come back all the time (F12)",
        variable: "LEASEHOLD_EVENTS",
        default: "1000000",
        line: || whole("e2e", &["watchers::".into()]),
    },
    Drill {
        name: "malformed",
        argument: "SECONDS",
        about: "mutated bodies, frames, configuration, audit exports and histories; so long for each (F14)",
        variable: "LEASEHOLD_FUZZ_SECONDS",
        default: "60",
        line: || whole("e2e", &["malformed::".into()]),
    },
    Drill {
        name: "malformed-journal",
        argument: "SECONDS",
        about: "mutated facts, snapshots and names; so long for each (F14)",
        variable: "LEASEHOLD_FUZZ_SECONDS",
        default: "60",
        line: || Line::cargo("test --release -p leasehold-sim --test malformed -- --nocapture"),
    },
    Drill {
        name: "neighbours",
        argument: "ROUNDS",
        about: "one tenant's flood, and a quiet tenant's p99 beside it and alone, in turns; on a quiet machine",
        variable: "LEASEHOLD_ROUNDS",
        default: "30",
        line: || {
            let line = whole("figures", &["neighbours::".into()]);
            line.env("LEASEHOLD_STRICT", "1")
        },
    },
    Drill {
        name: "run",
        argument: "TTL",
        about: "twenty commands under `run` lose the network: each is dead before its successor's grant",
        variable: "LEASEHOLD_TTL",
        default: "15s",
        line: || {
            Line::cargo("test -p leasehold-cli --all-features --test run -- --nocapture --ignored by_hand")
        },
    },
    Drill {
        name: "elect",
        argument: "TIMES",
        about: "leaders under `elect` shut down in order, each gap below 200 ms; on a quiet machine",
        variable: "LEASEHOLD_RESTARTS",
        default: "50",
        line: || {
            Line::cargo("test -p leasehold-cli --all-features --test elect -- --nocapture a_rolling_restart")
                .env("LEASEHOLD_STRICT", "1")
        },
    },
    Drill {
        name: "race",
        argument: "SECONDS",
        about: "64 writers with random tokens race on one resource, on every kind of fence; so long for each",
        variable: "LEASEHOLD_RACE_SECONDS",
        default: "10",
        line: || Line::cargo("test -p leasehold-fence --all-features --tests -- --test-threads 1"),
    },
    Drill {
        name: "zombie-client",
        argument: "TIMES",
        about: "a holder is stopped past its ttl and then writes, on every kind of fence",
        variable: "LEASEHOLD_DRILLS",
        default: "1000",
        line: || late_writes("paused"),
    },
    Drill {
        name: "late-write",
        argument: "TIMES",
        about: "a holder's write is held in the network until another has taken over, on every kind of fence",
        variable: "LEASEHOLD_DRILLS",
        default: "1000",
        line: || late_writes("delayed"),
    },
];

/// `leasehold drill` on the fences that the tests know; a fence's name after `--` picks one when typed by hand.
fn late_writes(how: &str) -> Line {
    Line::cargo("test -p leasehold-cli --all-features --test drill -- --nocapture")
        .env("LEASEHOLD_DRILL_HOW", how)
}

/// `cargo xtask drill NAME [ARGUMENT]`.
pub(crate) fn drill(args: &[String]) -> ExitCode {
    if let Some(code) = engines::drill(args) {
        return code;
    }
    let name = args.first().map(String::as_str);
    let Some(drill) = DRILLS.iter().find(|drill| Some(drill.name) == name) else {
        eprintln!("usage: cargo xtask drill NAME [ARGUMENT]\n");
        for Drill { name, argument, about, default, .. } in DRILLS {
            eprintln!("  {:<20} {about} [{default}]", format!("{name} [{argument}]"));
        }
        engines::list();
        return ExitCode::from(64);
    };
    let mut parts = Parts::new();
    if release(&mut parts) {
        let argument = args.get(1).map_or(drill.default, String::as_str);
        parts.tests(&format!("drill {}", drill.name), &(drill.line)().env(drill.variable, argument));
    }
    parts.finish()
}
