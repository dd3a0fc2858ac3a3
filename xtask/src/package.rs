//! The Debian package: the release build, its manual pages and completions, put together by cargo-deb.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::run::{Line, release_binary, target};

/// A shell, and what its completions are called where it looks for them.
const SHELLS: [(&str, &str); 3] = [("bash", "leasehold"), ("zsh", "_leasehold"), ("fish", "leasehold.fish")];

/// Makes `target/debian/leasehold_*.deb`.
pub(crate) fn package(args: &[String]) -> ExitCode {
    let build = Line::cargo("build --release --locked -p leasehold-cli");
    // What was generated beside the binary is named in crates/cli/Cargo.toml. Line tables would make it ten times as large.
    let deb = Line::cargo("deb --no-build --strip -p leasehold-cli");
    let deb = args.iter().fold(deb, |line, arg| line.arg(arg));
    match build.run() && generate(&target().join("release/package")) && deb.run() {
        true => ExitCode::SUCCESS,
        false => {
            eprintln!("no package was made; it needs `cargo install cargo-deb --locked`");
            ExitCode::FAILURE
        }
    }
}

/// Has the binary write what is about itself.
fn generate(directory: &Path) -> bool {
    let binary = release_binary().display().to_string();
    let man = Line::new(&binary, "man --to").arg(&directory.join("man").display().to_string());
    man.run()
        && SHELLS.iter().all(|(shell, name)| {
            let script = Line::new(&binary, "completions").arg(shell).output();
            let folder = directory.join(shell);
            script.is_some_and(|script| {
                fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(name), script)).is_ok()
            })
        })
}
