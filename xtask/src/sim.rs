//! `sim`: the simulator, the gate of deliberate mistakes, and the model.

use std::process::ExitCode;

use crate::parts::Parts;
use crate::run::{Line, target};

/// `cargo xtask sim …`.
pub(crate) fn sim(args: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    if parts.check("build simulator", &Line::cargo("build --release --quiet -p leasehold-sim")) {
        parts.check("simulator", &args.iter().fold(line(""), |line, arg| line.arg(arg)));
    }
    parts.finish()
}

/// What belongs to every test run, which has built it: a million faults, every mistake, every interleaving of a small
/// world.
pub(crate) fn floor(parts: &mut Parts) {
    parts.check("simulator", &line("--faults 1000000"));
    parts.check("deliberate mistakes", &line("--gate"));
    parts.check("model", &line("--model"));
}

fn line(args: &str) -> Line {
    Line::new(&target().join("release/leasehold-sim").display().to_string(), args)
}
