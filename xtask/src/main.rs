//! Every command that a developer or CI runs: `cargo xtask` lists them.
//!
//! It has no dependencies, so that it is built in a second. It decides nothing about the product; it runs cargo and
//! the test programs, counts what they say, and names the one command that repeats a failure.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for people prints")]

mod bench;
mod bless;
mod drill;
mod engines;
mod needs;
mod package;
mod parts;
mod run;
mod second_try;
mod sim;
mod tally;
mod test;

use std::process::ExitCode;

/// A command of `cargo xtask`.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> ExitCode,
}

/// The table that is listed, and that dispatch looks in.
const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        about: "what CI runs: verify, then every test; prints the minutes of each part",
        run: test::all,
    },
    Command {
        name: "verify",
        about: "format, clippy and docs, warnings as errors; changes nothing",
        run: test::verify,
    },
    Command {
        name: "fix",
        about: "the one that edits: rustfmt, and clippy's own suggestions",
        run: test::fix,
    },
    Command { name: "e2e", about: "the end to end tests alone [FILTER]", run: test::e2e },
    Command { name: "browser", about: "the console in Chromium alone [FILTER]", run: test::browser },
    Command { name: "alerts", about: "every alert on its fault alone [FILTER]", run: test::alerts },
    Command { name: "docs", about: "the console blocks of README and docs/ alone [FILTER]", run: test::docs },
    Command { name: "figures", about: "the measured tests alone [FILTER]", run: test::figures },
    Command { name: "drill", about: "a fault by hand; `drill` alone lists them", run: drill::drill },
    Command {
        name: "sim",
        about: "the simulator: a seed, or --faults N, --gate, --matrix, --model; `sim --help` tells more",
        run: sim::sim,
    },
    Command {
        name: "bench",
        about: "the real figures: release build, HTTP, embedded journal [SECONDS]",
        run: bench::bench,
    },
    Command {
        name: "bench-peers",
        about: "Leasehold and its peers side by side [--page: into docs/reference/performance.md] [--workload …] [--quick]",
        run: bench::peers,
    },
    Command {
        name: "overhead",
        about: "what a fence's check costs on each engine, side by side with the bare write",
        run: bench::overhead,
    },
    Command {
        name: "bless",
        about: "rewrite transcripts and golden files; read the diff before committing it",
        run: bless::bless,
    },
    Command {
        name: "package",
        about: "the Debian package, by cargo-deb, into target/debian [ARGS of cargo deb]",
        run: package::package,
    },
    Command {
        name: "needs",
        about: "what the tests need from this machine, and what is missing [install]",
        run: needs::report,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => {
            eprintln!("no command `{name}`\n");
            list();
            ExitCode::from(64)
        }
    }
}

fn list() {
    println!("usage: cargo xtask COMMAND [ARGS]\n");
    for command in COMMANDS {
        println!("  {:<8} {}", command.name, command.about);
    }
}
