//! Output, errors and exit codes, word for word: every document in `cmd/` is run against this build.

use std::path::Path;

use leasehold_tests::console;

#[test]
fn the_command_line_speaks_as_written() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    // Made by a version that knew no newer format.
    let old = tests.join("fixtures/format-2.backup").display().to_string();
    let documents = console::documents(&tests.join("cmd"));
    console::check_with(&documents, Path::new(env!("CARGO_BIN_EXE_leasehold")), &[("FORMAT_2", old)]);
}
