//! PostgreSQL's own client, for what an operator would type.

use std::process::Command;

use crate::find;

/// Runs psql on the database of this URL with these arguments, such as `-c STATEMENT` or `-f FILE`; gives what it says,
/// columns apart from each other and nothing else. It stops at the first error.
///
/// # Panics
/// When it fails.
pub fn psql(url: &str, args: &[&str]) -> String {
    let mut command = Command::new(find::program("psql", "postgresql-client"));
    command.args([
        "--no-psqlrc",
        "--quiet",
        "--tuples-only",
        "--no-align",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        url,
    ]);
    let output =
        command.args(args).output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
