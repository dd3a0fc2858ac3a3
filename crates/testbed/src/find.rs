//! Where the engines' programs are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Debian keeps servers in `sbin`, which is not always in the PATH of a user.
const EXTRA: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// The program of this name.
///
/// # Panics
/// When it is not installed: names the Debian package to install.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain(EXTRA.iter().map(PathBuf::from));
    places.find_map(|dir| existing(dir.join(name))).unwrap_or_else(|| missing(name, package))
}

/// The file at this path.
///
/// # Panics
/// When it is not there: names the Debian package to install.
pub(crate) fn file(path: &str, package: &str) -> PathBuf {
    existing(PathBuf::from(path)).unwrap_or_else(|| missing(path, package))
}

/// The folder into which `cargo xtask needs install` puts what is no Debian package.
pub(crate) fn tools() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from).join("tools")
}

/// A program in that folder.
///
/// # Panics
/// When it is not there: names the command that installs it.
pub(crate) fn tool(path: &str) -> PathBuf {
    let found = existing(tools().join(path));
    found.unwrap_or_else(|| panic!("{path} is not installed; this test needs it (cargo xtask needs install)"))
}

/// The directory with the programs of the newest PostgreSQL.
pub(crate) fn postgres_programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("postgres").is_file())
        .max();
    match newest {
        Some((_, bin)) => bin,
        None => parent(&program("postgres", "postgresql")),
    }
}

fn parent(file: &Path) -> PathBuf {
    file.parent().map(Path::to_owned).unwrap_or_default()
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

fn missing(what: &str, package: &str) -> ! {
    panic!(
        "{what} is not installed; this test needs the Debian package `{package}` (apt-get install {package})"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(expected = "needs the Debian package `no-such-package`")]
    fn a_missing_program_names_its_package() {
        super::program("no-such-program-of-leasehold", "no-such-package");
    }
}
