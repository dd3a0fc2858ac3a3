//! The Debian package: the `dist` build, its manual pages and completions, put together by cargo-deb.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::run::{Line, dist_binary, on_path, target};

/// A shell, and what its completions are called where it looks for them.
const SHELLS: [(&str, &str); 3] = [("bash", "leasehold"), ("zsh", "_leasehold"), ("fish", "leasehold.fish")];

/// Makes `target/debian/leasehold_*.deb`.
pub(crate) fn package(args: &[String]) -> ExitCode {
    // Before a build of minutes.
    if let Some(missing) = missing() {
        eprintln!("no package was made; it needs {missing}");
        return ExitCode::FAILURE;
    }
    let build = Line::cargo("build --profile dist --locked -p leasehold-cli");
    // What was generated beside the binary is named in crates/cli/Cargo.toml, by the folder of release builds, for which cargo-deb
    // puts that of the profile. Line tables would make it ten times as large.
    let deb = Line::cargo("deb --no-build --profile dist --strip -p leasehold-cli");
    let deb = args.iter().fold(deb, |line, arg| line.arg(arg));
    match build.run() && generate(&target().join("dist/package")) && deb.run() {
        true => ExitCode::SUCCESS,
        false => {
            eprintln!("no package was made");
            ExitCode::FAILURE
        }
    }
}

/// What is not here, and how it comes.
fn missing() -> Option<&'static str> {
    if Line::cargo("deb --version").output().is_none() {
        return Some("`cargo install cargo-deb --locked`");
    }
    // Without it cargo-deb warns, and makes a package that depends on no library.
    (!on_path("dpkg-shlibdeps")).then_some("`apt-get install dpkg-dev`")
}

/// Has the binary write what is about itself.
fn generate(directory: &Path) -> bool {
    // A page of a command that is no more would go into the package with the others.
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("cannot remove {}: {error}", directory.display());
            return false;
        }
        _ => {}
    }
    let binary = dist_binary().display().to_string();
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::run::root;

    #[test]
    fn every_file_of_the_package_is_there_or_is_made() {
        let folder = root().join("crates/cli");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (_, assets) = manifest.split_once("\nassets = [\n").unwrap();
        let (assets, _) = assets.split_once("\n]").unwrap();
        let sources = assets.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split('"').next());
        let (generated, others): (Vec<_>, Vec<_>) =
            sources.partition(|source| source.starts_with("target/release/package/"));
        let made = SHELLS.iter().map(|(shell, name)| format!("target/release/package/{shell}/{name}"));
        let man = "target/release/package/man/*.1".to_owned();
        assert_eq!(generated, std::iter::once(man).chain(made).collect::<Vec<_>>());
        for source in others {
            assert!(source == "target/release/leasehold" || folder.join(source).is_file(), "{source}");
        }
        for script in ["postinst", "prerm", "postrm"] {
            let mode = fs::metadata(root().join("deploy/debian").join(script)).unwrap().permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{script} can be run");
        }
    }
}
