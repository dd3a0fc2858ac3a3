//! Promises that are numbers, measured on the release build. What is asserted leaves room for a busy machine with two
//! cores; `cargo xtask bench` prints the real figures.
//!
//! Tests of this program run one after another: each wants the machine for itself.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "figures are read by people; whatever fails, fails the test"
)]

mod held;
mod http;
mod metrics;
mod sessions;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test that is measuring.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A failed measurement does not spoil the next.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
