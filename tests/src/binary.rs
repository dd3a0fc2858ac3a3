//! The `leasehold` binary that tests drive: the release build, because it is the one that users run and whose figures
//! are promised.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Its path: `LEASEHOLD_BIN`, which `cargo xtask` sets, or else a release build made on first use.
pub fn path() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("LEASEHOLD_BIN") {
        Some(path) => path.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", "leasehold-cli"])
        .current_dir(root())
        .status()
        .expect("cargo started this test, so it can be started");
    assert!(built.success(), "to repeat: cargo build --release --package leasehold-cli");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("release/leasehold")
}

/// The workspace root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies in the workspace").to_owned()
}
