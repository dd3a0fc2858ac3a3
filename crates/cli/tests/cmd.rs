//! Output, errors and exit codes, word for word: every document in `cmd/` is run against this build.

use std::path::Path;

use leasehold_tests::console;

#[test]
fn the_command_line_speaks_as_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    let documents = console::documents(&directory);
    assert!(documents.len() >= 5, "the documents are in {}", directory.display());
    for document in documents {
        console::check(&document, Path::new(env!("CARGO_BIN_EXE_leasehold")));
    }
}
