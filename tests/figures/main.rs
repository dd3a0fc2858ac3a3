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
mod neighbours;
mod sessions;

use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Held by the test that is measuring.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A failed measurement does not spoil the next.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a `bench` that went well has told.
fn figures(output: &Output) -> Value {
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    serde_json::from_str(&told).unwrap()
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
