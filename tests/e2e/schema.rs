//! Malformed and odd requests, made from our own OpenAPI document (F13): nothing is answered with an error of ours, and
//! nothing in a way that the document does not say.

use std::path::PathBuf;
use std::process::Command;

use leasehold_tests::{Server, binary};

/// The least number of requests that count as a run.
const FLOOR: u64 = 5_000;
/// For each operation and kind of request; gives more than [`FLOOR`].
const EXAMPLES: &str = "180";
/// To repeat a run: `LEASEHOLD_SEED=7 cargo xtask e2e schema`.
const SEED: &str = "13";

fn schemathesis() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| binary::root().join("target"), PathBuf::from);
    let program = target.join("tools/python/bin/schemathesis");
    assert!(
        program.is_file(),
        "schemathesis is not installed; this test needs it (cargo xtask needs install)"
    );
    program
}

#[test]
fn requests_made_from_the_document_are_answered_as_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let api = binary::root().join("crates/api");
    let seed = std::env::var("LEASEHOLD_SEED").unwrap_or_else(|_| SEED.to_owned());
    let run = Command::new(schemathesis())
        .arg("--config-file")
        .arg(api.join("schemathesis.toml"))
        .arg("run")
        .arg(api.join("openapi.json"))
        .args(["--url", &server.url(), "--max-examples", EXAMPLES, "--seed", &seed])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none", "--no-color"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success(),
        "repeat with LEASEHOLD_SEED={seed}\n{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(cases(&said) >= FLOOR, "fewer than {FLOOR} requests\n{said}");
}

/// How many requests it says it has made.
fn cases(said: &str) -> u64 {
    let counted = said.lines().find_map(|line| line.trim().split_once(" generated, "));
    let (count, _) = counted.unwrap_or_else(|| panic!("no count in\n{said}"));
    count.parse().unwrap_or_else(|_| panic!("{count} is no count"))
}
