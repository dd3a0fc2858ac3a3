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
        let units = "test --workspace --all-features --exclude leasehold-tests --no-fail-fast";
        parts.tests("unit and crate tests", &Line::cargo(units));
        parts.tests("guide", &Line::cargo("test -p leasehold-tests --doc"));
        if release(&mut parts) {
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
