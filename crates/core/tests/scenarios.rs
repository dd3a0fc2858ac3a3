//! Stories of the lock table as transcripts: a command after `>`, its outcome below it. `cargo xtask bless` rewrites the
//! outcomes; read the difference and commit it only if you can explain it. The language is in `transcript/mod.rs`.
//!
//! After every step every invariant is checked, and that replay and snapshots give the live state.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;
mod transcript;

use std::fs;
use std::path::{Path, PathBuf};

fn stories() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut stories: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    stories
}

#[test]
fn every_story_goes_as_written() {
    let bless = std::env::var_os("LEASEHOLD_BLESS").is_some();
    let mut changed = Vec::new();
    for path in stories() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let written = fs::read_to_string(&path).unwrap();
        let told = transcript::tell(&name, &written);
        if bless {
            fs::write(&path, &told).unwrap();
        } else if told != written {
            changed.push(format!("{name}:\n{}", first_difference(&written, &told)));
        }
    }
    assert!(
        changed.is_empty(),
        "{}\nrepeat: cargo test -p leasehold-core --test scenarios\naccept: cargo xtask bless",
        changed.join("\n")
    );
}

fn first_difference(written: &str, told: &str) -> String {
    let mut command = "";
    let mut told_lines = told.lines();
    for (number, line) in written.lines().enumerate() {
        if line.starts_with('>') {
            command = line;
        }
        let found = told_lines.next().unwrap_or("(nothing)");
        if line != found {
            return format!("  line {} after {command}\n  - {line}\n  + {found}", number + 1);
        }
    }
    format!("  after {command}\n  + {}", told_lines.next().unwrap_or("(nothing)"))
}

#[test]
fn there_is_a_story_for_every_subject() {
    assert!(stories().len() >= 20, "stories got lost");
}
