//! `sim`: the simulator, the gate of deliberate mistakes, and the model.

use std::process::ExitCode;

use crate::parts::Parts;
use crate::run::Line;

/// `cargo xtask sim …`.
pub(crate) fn sim(args: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    if build(&mut parts) {
        parts.check("simulator", &args.iter().fold(line(""), |line, arg| line.arg(arg)));
    }
    parts.finish()
}

/// What belongs to every test run: a million faults, every mistake, every interleaving of a small world.
pub(crate) fn floor(parts: &mut Parts) {
    if build(parts) {
        parts.check("simulator", &line("--faults 1000000"));
        parts.check("deliberate mistakes", &line("--gate --seeds 400"));
        parts.check("model", &line("--model"));
    }
}

fn build(parts: &mut Parts) -> bool {
    parts.check("build simulator", &Line::cargo("build --release --quiet -p leasehold-sim"))
}

fn line(args: &str) -> Line {
    Line::cargo(&format!("run --release --quiet -p leasehold-sim -- {args}"))
}
