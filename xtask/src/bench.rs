//! `bench` and `overhead`: the real figures on this machine.

use std::path::Path;
use std::process::ExitCode;

use crate::needs;
use crate::parts::Parts;
use crate::run::{Line, dist_binary, release_binary};

/// The workloads that the promises name, each against a fresh server in a temporary directory.
const WORKLOADS: &[&str] =
    &["cycle --clients 64", "handoff --clients 64", "renew --clients 64", "cycle --clients 64 --rate 5000"];

/// `cargo xtask bench [SECONDS]`.
pub(crate) fn bench(args: &[String]) -> ExitCode {
    let seconds = args.first().map_or("10", String::as_str);
    let mut parts = Parts::new();
    if parts.check("release build", &Line::cargo("build --release --quiet -p leasehold-cli")) {
        let binary = release_binary().display().to_string();
        for workload in WORKLOADS {
            let line = Line::new(&binary, &format!("bench {workload} --duration {seconds}s --own-server"));
            parts.check(workload, &line);
        }
    }
    parts.finish()
}

/// What the peers are, as the table of needs has it: without one of them a long run would end in its middle.
const PEERS: &[&str] =
    &["setpriv", "postgres", "redis-server", "etcd", "java", "zookeeper.jar", "slf4j-simple.jar"];

/// `cargo xtask bench-peers [--page] [--workload …] [ARGS]`: `bench/` is told what we are told. Measured is what packages have.
pub(crate) fn peers(args: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    if let Err(missing) = needs::meet_named(PEERS) {
        parts.impossible("needs", missing);
        return parts.finish();
    }
    let build = Line::cargo("build --profile dist --quiet -p leasehold-cli -p leasehold-bench");
    if parts.check("dist build", &build) {
        let line = peers_line(&dist_binary(), "");
        let line = args.iter().fold(line, |line, arg| line.arg(arg));
        parts.check("bench-peers", &line);
    }
    parts.finish()
}

/// The short run of the test command, which has built it: it works, and nothing has become many times slower.
pub(crate) fn smoke(parts: &mut Parts) {
    parts.check("peers", &peers_line(&release_binary(), "--smoke"));
}

/// The benchmark that was built beside this binary, with it.
fn peers_line(binary: &Path, args: &str) -> Line {
    let program = binary.with_file_name("leasehold-bench").display().to_string();
    Line::new(&program, args).env("LEASEHOLD_BIN", &binary.display().to_string())
}

/// `cargo xtask overhead`.
pub(crate) fn overhead(_: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    let line = "run --release --quiet -p leasehold-fence --features http,mariadb,postgres,redis,sqlite --example overhead";
    parts.check("fence overhead", &Line::cargo(line));
    parts.finish()
}
