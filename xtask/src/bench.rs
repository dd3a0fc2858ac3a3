//! `bench` and `overhead`: the real figures on this machine.

use std::process::ExitCode;

use crate::parts::Parts;
use crate::run::{Line, release_binary};

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

/// `cargo xtask overhead`.
pub(crate) fn overhead(_: &[String]) -> ExitCode {
    let mut parts = Parts::new();
    let line = "run --release --quiet -p leasehold-fence --features http,mariadb,postgres,redis,sqlite --example overhead";
    parts.check("fence overhead", &Line::cargo(line));
    parts.finish()
}
