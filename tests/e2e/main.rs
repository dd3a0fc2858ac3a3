//! The real binary on real ports and directories, seen from outside: over sockets, files, signals and exit codes.
//!
//! Each test has its own server and directory. `cargo xtask e2e NAME` runs one of them.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are for people; whatever fails, fails the test"
)]

mod attacks;
mod bad_input;
mod basics;
mod clock_steps;
mod directory;
mod full_disk;
mod kill9;
mod malformed;
mod restart;
mod retries;
mod schema;
mod settings;
mod stall;
mod traces;
mod waiters;
mod watchers;
