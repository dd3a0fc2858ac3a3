//! `cargo xtask sim`: runs seeds, one of them, or the gate of deliberate mistakes.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for people prints")]

mod args;
mod gate;
mod interleavings;
mod many;
mod one;

use std::process::ExitCode;

use args::{Args, Task};

/// A run makes and drops millions of small things.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}\n\n{}", args::USAGE);
            return ExitCode::from(64);
        }
    };
    many::say_seed_of_a_panic();
    let fine = match &args.task {
        Task::One => one::run(&args.options, args.history.as_deref()),
        Task::Many { faults, seconds } => many::run(&args.options, *faults, *seconds),
        Task::Catch { seeds } => gate::catch(&args.options, *seeds),
        Task::Gate { seeds } => gate::table(*seeds),
        Task::Matrix { seeds } => gate::matrix(*seeds),
        Task::Model { scope, most_steps } => interleavings::explore(*scope, *most_steps),
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
