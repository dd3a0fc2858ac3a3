//! What the tests need from the machine: one table. As root what is missing is installed; otherwise it is named.

use std::process::ExitCode;

use crate::run::{Line, on_path};

/// Something that a test needs beyond the Rust toolchain.
struct Need {
    /// How its presence is seen.
    sign: Sign,
    /// Where it comes from.
    source: Source,
    /// Which tests want it.
    why: &'static str,
}

/// How the presence of a need is seen.
enum Sign {
    /// A program on the PATH, or in the system directories.
    Program(&'static str),
}

/// Where a need comes from.
enum Source {
    /// A Debian package.
    Debian(&'static str),
}

/// The table. A new engine or tool is a new row.
const NEEDS: &[Need] = &[
    Need { sign: Sign::Program("cc"), source: Source::Debian("gcc"), why: "linking" },
    Need { sign: Sign::Program("bash"), source: Source::Debian("bash"), why: "console blocks of the docs" },
    Need { sign: Sign::Program("curl"), source: Source::Debian("curl"), why: "console blocks of the docs" },
    Need { sign: Sign::Program("mount"), source: Source::Debian("mount"), why: "the full disk test" },
];

impl Need {
    fn name(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) => name,
        }
    }

    fn is_there(&self) -> bool {
        match self.sign {
            Sign::Program(name) => on_path(name),
        }
    }
}

/// Installs what is missing if we may.
///
/// # Errors
/// Says what is still missing and how to get it.
pub(crate) fn meet() -> Result<(), String> {
    let packages = missing_packages();
    if packages.is_empty() {
        return Ok(());
    }
    if is_root() && install(&packages) && missing_packages().is_empty() {
        return Ok(());
    }
    Err(format!("apt-get install {}   # missing on this machine", missing_packages().join(" ")))
}

/// `cargo xtask needs`.
pub(crate) fn report(_: &[String]) -> ExitCode {
    for need in NEEDS {
        let state = if need.is_there() { "here" } else { "missing" };
        let Source::Debian(package) = need.source;
        println!("{:<10} {state:<8} Debian package {package:<14} for {}", need.name(), need.why);
    }
    if missing_packages().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn missing_packages() -> Vec<&'static str> {
    let missing = NEEDS.iter().filter(|need| !need.is_there());
    missing
        .map(|need| match need.source {
            Source::Debian(package) => package,
        })
        .collect()
}

fn is_root() -> bool {
    Line::new("id", "-u").output().is_some_and(|uid| uid.trim() == "0")
}

/// The package lists of a fresh machine may be empty: they are fetched once when the first attempt fails.
fn install(packages: &[&str]) -> bool {
    let install = || {
        let line = Line::new("apt-get", "install -y --no-install-recommends")
            .env("DEBIAN_FRONTEND", "noninteractive");
        packages.iter().fold(line, |line, package| line.arg(package)).run()
    };
    println!("installing {}", packages.join(" "));
    install() || (Line::new("apt-get", "update").run() && install())
}
