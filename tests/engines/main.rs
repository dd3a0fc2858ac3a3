//! Drills on real engines: nodes killed, stopped and cut off, engines killed, stopped and failed over, while clients
//! work and write down what they are told. A drill ends with the history checked: see `history.rs`.
//!
//! `cargo xtask drill` lists them and runs one for longer; each prints the line that repeats it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "whatever fails, fails the test; drills tell how to repeat"
)]

mod cluster;
mod drill;
mod engine;
mod engine_away;
mod fail_over;
mod history;
mod kill_active;
mod load;
mod partitions;
mod rolling;
mod unknown;
mod zombie_node;
