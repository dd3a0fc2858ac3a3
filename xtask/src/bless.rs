//! `bless`: rewriting what tests compare against.

use std::process::ExitCode;

use crate::parts::Parts;
use crate::run::Line;

/// Rewrites scenario transcripts, golden files, the OpenAPI document and the console blocks, by running the tests that
/// compare them with `LEASEHOLD_BLESS=1`. A second run without it must then be green.
pub(crate) fn bless(args: &[String]) -> ExitCode {
    let packages: Vec<&str> = match args {
        [] => vec!["leasehold-core", "leasehold-api", "leasehold-server", "leasehold-cli", "leasehold-tests"],
        named => named.iter().map(String::as_str).collect(),
    };
    let mut parts = Parts::new();
    for package in packages {
        let target = if package == "leasehold-tests" { "--test docs" } else { "" };
        let line = Line::cargo(&format!("test -p {package} {target} --no-fail-fast"));
        parts.tests(package, &line.env("LEASEHOLD_BLESS", "1"));
    }
    println!("\nread `git diff` and commit only what you can explain");
    parts.finish()
}
