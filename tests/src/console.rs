//! Runs the `console` blocks of a document, word for word, and compares what comes out.
//!
//! A block has commands after `$ ` and below each what it prints. `[..]` stands for any text within a line, `...` alone
//! for any lines; a line `? 75` right after the command says that it ends with that code instead of 0. All blocks of a
//! document share one bash, so that a variable or a lease made in one is there in the next, as for a reader who types
//! along. That, background servers and `curl` in pipes are why this is a runner of its own.
//!
//! Three things differ from a reader's terminal: the port is a free one instead of 7420, `cargo run --release --` stands
//! for the binary that was built before, and a `serve` in the foreground is left running, as in a second terminal. With
//! `LEASEHOLD_BLESS=1` blocks whose output differs are rewritten.

mod block;
mod shell;

use std::path::Path;

use block::{Document, Step};
use shell::Shell;

/// What documents say; the runner puts a free port in its place.
const PORT: &str = "7420";

/// Runs every console block of the document in a fresh directory.
///
/// # Panics
/// With what was expected and what came, for every step that differs.
pub fn check(document: &Path, binary: &Path) {
    let text =
        std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    let mut parsed = Document::parse(&text);
    let mut shell = Shell::start(binary);
    let mut differences = Vec::new();
    for step in parsed.steps_mut() {
        let (output, code) = shell.run(&step.command);
        if !step.is_met_by(&output, code) {
            differences.push(difference(step, &output, code));
            step.take(&output, code);
        }
    }
    drop(shell);
    if differences.is_empty() {
        return;
    }
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(document, parsed.text()).unwrap();
        return;
    }
    let name = document.display();
    panic!(
        "{name}: {} steps differ\n{}\nif this is right: cargo xtask bless",
        differences.len(),
        differences.join("\n")
    );
}

/// Every document under a directory that has console blocks.
pub fn documents(directory: &Path) -> Vec<std::path::PathBuf> {
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
