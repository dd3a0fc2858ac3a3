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
    /// A program on the PATH, or in the directories where Debian keeps servers.
    Program(&'static str),
    /// A file.
    File(&'static str),
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
    Need {
        sign: Sign::Program("setpriv"),
        source: Source::Debian("util-linux"),
        why: "engines of the testbed",
    },
    Need {
        sign: Sign::Program("postgres"),
        source: Source::Debian("postgresql"),
        why: "PostgreSQL journal and fence",
    },
    Need {
        sign: Sign::Program("psql"),
        source: Source::Debian("postgresql-client"),
        why: "console blocks of the docs",
    },
    Need { sign: Sign::Program("mariadbd"), source: Source::Debian("mariadb-server"), why: "MariaDB fence" },
    Need {
        sign: Sign::Program("redis-server"),
        source: Source::Debian("redis-server"),
        why: "Redis journal and fence",
    },
    Need {
        sign: Sign::Program("etcd"),
        source: Source::Debian("etcd-server"),
        why: "etcd journal and fence",
    },
    Need {
        sign: Sign::Program("etcdctl"),
        source: Source::Debian("etcd-client"),
        why: "the etcd fence seen from outside",
    },
    Need { sign: Sign::Program("script"), source: Source::Debian("bsdutils"), why: "commands in a terminal" },
    Need { sign: Sign::Program("java"), source: Source::Debian("default-jre-headless"), why: "ZooKeeper" },
    Need {
        sign: Sign::File("/usr/share/java/zookeeper.jar"),
        source: Source::Debian("zookeeper"),
        why: "ZooKeeper journal",
    },
    Need {
        sign: Sign::File("/usr/share/java/slf4j-simple.jar"),
        source: Source::Debian("libslf4j-java"),
        why: "ZooKeeper's log",
    },
];

impl Need {
    fn name(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) => name,
            Sign::File(path) => path.rsplit('/').next().unwrap_or(path),
        }
    }

    fn is_there(&self) -> bool {
        match self.sign {
            Sign::Program(name) => on_path(name),
            Sign::File(path) => std::path::Path::new(path).is_file(),
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
        println!("{:<16} {state:<8} Debian package {package:<20} for {}", need.name(), need.why);
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
