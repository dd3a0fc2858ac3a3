//! One tenant's flood and another's latency, in time. What a quiet tenant waits for is counted exactly by the node's own
//! tests; here it is measured as a caller sees it, by hand with `cargo xtask drill neighbours`.
//!
//! Client, flood and server share one machine, which real ones do not. So the flood runs at the lowest priority: it takes
//! what the server and the quiet client leave of the processors, and is still far more than the server can do. The quiet
//! tenant has a steady load, a thousand acquires a second, so that a slice of one second has a p99 worth the name; slices
//! alone and beside the flood take turns, the flood standing still meanwhile, so that whatever else the machine does meets
//! both alike.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use leasehold_tests::{Server, Stopwatch, binary, free_port, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{figures, median};

/// The quiet tenant's load: eight callers that do not wait for each other.
const QUIET: &[&str] = &["cycle", "--clients", "8", "--rate", "1000"];
/// Floods: of single calls, and of frames with many.
const FLOODS: &[(&str, &[&str])] = &[
    ("64 connections", &["cycle", "--clients", "64"]),
    ("1,000 calls on one stream", &["cycle", "--clients", "1000", "--transport", "grpc"]),
];
/// Longer than any drill: a flood ends with its test.
const FLOOD_LASTS: &str = "1h";
/// The promise; `LEASEHOLD_STRICT=1` asserts it.
const PROMISED: f64 = 2.0;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_flood_leaves_a_quiet_tenant_its_latency() {
    let _alone = crate::alone();
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
    };
    let (rounds, seconds) = (number("LEASEHOLD_ROUNDS", 1), number("LEASEHOLD_SECONDS", 1));
    let is_strict = std::env::var_os("LEASEHOLD_STRICT").is_some();
    let world = World::start(seconds);
    for (what, load) in FLOODS {
        let flood = world.flood(load);
        let (mut alone, mut beside, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=rounds {
            alone.push(world.quiet_p99());
            let (p99, rate) = world.quiet_p99_beside(&flood);
            beside.push(p99);
            rates.push(rate);
            println!(
                "round {round}, {what}: p99 {:.2} ms alone, {p99:.2} ms beside {rate:.0} locks a second",
                alone[alone.len() - 1]
            );
        }
        let pairs: Vec<f64> = alone.iter().zip(&beside).map(|(alone, beside)| beside / alone).collect();
        let (before, during) = (median(&alone), median(&beside));
        let ratio = during / before;
        println!(
            "{what}: median p99 {before:.2} ms alone, {during:.2} ms beside another tenant's {:.0} locks a second",
            median(&rates)
        );
        println!(
            "{what}: {ratio:.2} times that without, promised {PROMISED}; slice by slice {:.2} times",
            median(&pairs)
        );
        assert!(!is_strict || ratio < PROMISED, "{what}: {ratio:.2} times");
    }
}

/// A server with a quiet tenant.
struct World {
    server: Server,
    quiet: PathBuf,
    seconds: u64,
    directory: tempfile::TempDir,
}

impl World {
    fn start(seconds: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::spawn_with(free_port(), &directory.path().join("data"), &["--auth"]);
        server.wait_ready();
        let quiet = directory.path().join("quiet.key");
        let world = Self { server, quiet, seconds, directory };
        world.let_in("quiet", &world.quiet);
        world
    }

    fn let_in(&self, tenant: &str, file: &Path) {
        let file = file.to_str().unwrap();
        let args = ["credential", "create", tenant, "--tenant", tenant, "--role", "client", "--out", file];
        self.as_admin(&args);
    }

    fn as_admin(&self, args: &[&str]) -> Output {
        let admin = self.server.data().join("admin-credential");
        let output = self.server.cli(&[args, &["--credential-file", admin.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// A flood by a tenant of its own, standing still.
    fn flood(&self, load: &[&str]) -> Flood {
        let tenant = format!("flood-{}", self.last_token());
        let key = self.directory.path().join(&tenant);
        self.let_in(&tenant, &key);
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(binary::path());
        let process = self.bench(&mut nice, load, FLOOD_LASTS, &key).spawn().unwrap();
        let flood = Flood(process);
        self.comes_in(self.last_token());
        flood.signal(Signal::STOP);
        flood
    }

    fn comes_in(&self, before: u64) {
        until("the flood to come in", PATIENCE, || (self.last_token() > before + 1_000).then_some(()));
    }

    /// Fails if any call of the quiet tenant does.
    fn quiet_p99(&self) -> f64 {
        let mut command = Command::new(binary::path());
        let duration = format!("{}s", self.seconds);
        let measured = self.bench(&mut command, QUIET, &duration, &self.quiet).output().unwrap();
        figures(&measured)["latencyMs"]["p99"].as_f64().unwrap()
    }

    /// The same while the flood goes on, and how many locks a second both took.
    fn quiet_p99_beside(&self, flood: &Flood) -> (f64, f64) {
        let still = self.last_token();
        flood.signal(Signal::CONT);
        self.comes_in(still);
        let (before, watch) = (self.last_token(), Stopwatch::start());
        let p99 = self.quiet_p99();
        let rate = (self.last_token() - before) as f64 / watch.elapsed().as_secs_f64();
        flood.signal(Signal::STOP);
        (p99, rate)
    }

    fn bench<'a>(
        &self,
        command: &'a mut Command,
        load: &[&str],
        duration: &str,
        credential: &Path,
    ) -> &'a mut Command {
        command.arg("bench").args(load).args(["--output", "json", "--duration", duration]);
        command.arg("--credential-file").arg(credential);
        command.env("LEASEHOLD_SERVER", self.server.url()).stdout(Stdio::piped()).stderr(Stdio::piped())
    }

    fn last_token(&self) -> u64 {
        let output = self.as_admin(&["status", "--output", "json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["lastToken"].as_u64().unwrap()
    }
}

/// A flood that ends with its test.
struct Flood(Child);

impl Flood {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
