//! Output, errors and exit codes, word for word: every document in `cmd/` is run against this build.

use std::path::Path;

use leasehold_tests::console;

#[test]
fn the_command_line_speaks_as_written() {
    let documents = console::documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd"));
    console::check(&documents, Path::new(env!("CARGO_BIN_EXE_leasehold")));
}
