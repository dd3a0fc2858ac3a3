//! The `leasehold` command: the server, and the calls that operators and scripts make by hand.
//!
//! A command line is read in two steps: [`args`] holds it as typed, [`plan`] as meant, with every name, id and duration
//! checked. What is meant is then done by one function in [`commands`]. Exit codes stand in one table, [`exit`].
//!
//! It decides nothing about locks. `run` alone keeps a lease alive, with the Rust client; `acquire` asks once, prints, and
//! ends.

mod args;
mod bench;
mod client;
mod commands;
mod duration;
mod ending;
mod exit;
mod failure;
mod memory;
mod number;
mod output;
mod owner;
mod plan;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::Plan;

/// A server makes and drops a dozen small things for every lock, on several threads, and holds a million of them. In
/// the profile of the system's allocator a tenth of the loop's time was its bookkeeping.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&error),
    };
    let done = Plan::new(cli).and_then(commands::perform);
    match done {
        Ok(code) => code,
        Err(failure) => say(&failure),
    }
}

/// Help and version are answers; everything else is a mistake in the command line.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    // A closed pipe leaves nobody to tell.
    let _ = error.print();
    match error.use_stderr() {
        true => Exit::Usage.into(),
        false => Exit::Done.into(),
    }
}

fn say(failure: &Failure) -> ExitCode {
    if !failure.is_closed_pipe() {
        let _ = writeln!(std::io::stderr(), "leasehold: {failure}");
    }
    failure.exit().into()
}
