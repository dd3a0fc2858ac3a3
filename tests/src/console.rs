//! Runs the `console` blocks of a document, word for word, and compares what comes out.
//!
//! A block has commands after `$ ` and below each what it prints. `[..]` stands for any text within a line, `...` alone
//! for any lines; ids, times and hashes may be others than shown. A line `? 75` right after the command says that it ends with that code instead of 0. All blocks of a
//! document share one bash, so that a variable or a lease made in one is there in the next, as for a reader who types
//! along. That, background servers and `curl` in pipes are why this is a runner of its own.
//!
//! Three things differ from a reader's terminal: the port is a free one instead of 7420, `cargo run --release --` stands
//! for the binary that was built before, and a `serve` in the foreground is left running, as in a second terminal, until
//! `# Ctrl-C in the terminal of the server`. With
//! `LEASEHOLD_BLESS=1` blocks whose output differs are rewritten.

mod block;
mod shell;

use std::path::{Path, PathBuf};

use block::{Document, Step};
use shell::Shell;

/// What documents say; the runner puts a free port in its place.
const PORT: &str = "7420";

/// Runs the console blocks of each document, every document in a fresh directory.
///
/// # Panics
/// With what was expected and what came, for every step that differs, and when there are no documents at all.
pub fn check(documents: &[PathBuf], binary: &Path) {
    check_with(documents, binary, &[]);
}

/// The same with variables in the environment, such as where a document's database is.
///
/// # Panics
/// As [`check`].
pub fn check_with(documents: &[PathBuf], binary: &Path, variables: &[(&str, String)]) {
    assert!(!documents.is_empty(), "there is nothing to check");
    let differences: Vec<String> =
        documents.iter().flat_map(|document| differences(document, binary, variables)).collect();
    let count = differences.len();
    assert!(
        count == 0,
        "{count} steps differ\n{}\nif this is right: cargo xtask bless",
        differences.join("\n")
    );
}

fn differences(document: &Path, binary: &Path, variables: &[(&str, String)]) -> Vec<String> {
    let text =
        std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    let mut parsed = Document::parse(&text);
    let mut shell = Shell::start(binary, variables);
    let mut differences = Vec::new();
    for step in parsed.steps_mut() {
        let (output, code) = shell.run(&step.command);
        if !step.is_met_by(&output, code) {
            differences.push(format!("{}: {}", document.display(), difference(step, &output, code)));
            step.take(&output, code);
        }
    }
    if !differences.is_empty() && std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(document, parsed.text()).unwrap();
        differences.clear();
    }
    differences
}

/// Every document under a directory that has console blocks.
pub fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if std::fs::read_to_string(&path).is_ok_and(|text| text.contains("```console")) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn difference(step: &Step, output: &str, code: i32) -> String {
    let expected = step.expected.join("\n");
    let wanted = step.code;
    format!("$ {}\n--- expected, code {wanted}\n{expected}\n--- came, code {code}\n{output}", step.command)
}
