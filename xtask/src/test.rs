//! `test`, its parts on their own, and `fix`.

use std::process::ExitCode;

use crate::bench;
use crate::engines;
use crate::needs;
use crate::parts::Parts;
use crate::run::{Line, release_binary};
use crate::sim;

/// Building the tests can bring out lints that clippy alone does not see; all of them are errors.
const CLIPPY: &str = "clippy --workspace --all-targets --all-features --quiet -- -D warnings";

/// Every release build that the tests drive, in one go: what they share is built once.
const RELEASES: &str = "build --release --quiet -p leasehold-cli -p leasehold-bench -p leasehold-sim";

/// `cargo xtask test`.
pub(crate) fn all(_: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    if let Err(missing) = needs::meet() {
        parts.impossible("needs", missing);
        return parts.finish();
    }
    verify_parts(&mut parts);
    let built = parts.check("build tests", &Line::cargo("test --workspace --all-features --no-run --quiet"));
    if built {
        // Examples in comments and in the guide are a part of their own: all features of the whole workspace at once,
        // as everywhere here, or what they stand on would be built a second time.
        let units =
            "test --workspace --all-features --exclude leasehold-tests --lib --bins --tests --examples";
        parts.tests("unit and crate tests", &Line::cargo(units).arg("--no-fail-fast"));
        parts.tests("examples", &Line::cargo("test --workspace --all-features --doc --no-fail-fast"));
        if parts.check("release build", &Line::cargo(RELEASES)) {
            for target in ["docs", "e2e", "browser", "alerts", "figures"] {
                parts.tests(target, &whole(target, &[]));
            }
            parts.tests("engines", &engines::floor());
            sim::floor(&mut parts);
            bench::smoke(&mut parts);
        }
    }
    parts.finish()
}

/// `cargo xtask verify`.
pub(crate) fn verify(_: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    verify_parts(&mut parts);
    parts.finish()
}

/// `cargo xtask fix`.
pub(crate) fn fix(_: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    parts.check(
        "clippy --fix",
        &Line::cargo("clippy --workspace --all-targets --fix --allow-dirty --allow-staged"),
    );
    parts.check("format", &Line::cargo("fmt --all"));
    parts.finish()
}

/// `cargo xtask e2e [FILTER]`.
pub(crate) fn e2e(args: &[String]) -> ExitCode {
    one("e2e", args)
}

/// `cargo xtask browser [FILTER]`.
pub(crate) fn browser(args: &[String]) -> ExitCode {
    one("browser", args)
}

/// `cargo xtask alerts [FILTER]`.
pub(crate) fn alerts(args: &[String]) -> ExitCode {
    one("alerts", args)
}

/// `cargo xtask docs [FILTER]`.
pub(crate) fn docs(args: &[String]) -> ExitCode {
    one("docs", args)
}

/// `cargo xtask figures [FILTER]`.
pub(crate) fn figures(args: &[String]) -> ExitCode {
    one("figures", args)
}

fn verify_parts(parts: &mut Parts) {
    parts.check("format", &Line::cargo("fmt --all --check"));
    parts.check("clippy", &Line::cargo(CLIPPY));
    parts.check(
        "docs build",
        &Line::cargo("doc --workspace --all-features --no-deps --quiet").env("RUSTDOCFLAGS", "-D warnings"),
    );
}

/// One test program of the end to end crate, with the release binary it drives.
fn one(target: &str, args: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    if release(&mut parts) {
        parts.tests(target, &whole(target, args));
    }
    parts.finish()
}

pub(crate) fn release(parts: &mut Parts) -> bool {
    parts.check("release build", &Line::cargo("build --release --quiet -p leasehold-cli"))
}

pub(crate) fn whole(target: &str, args: &[String]) -> Line {
    // Figures and skipped parts are printed by tests that pass; they should be seen.
    let line = Line::cargo(&format!(
        "test --workspace --all-features --test {target} --no-fail-fast -- --nocapture"
    ));
    let line = args.iter().fold(line, |line, arg| line.arg(arg));
    line.env("LEASEHOLD_BIN", &release_binary().display().to_string())
}
