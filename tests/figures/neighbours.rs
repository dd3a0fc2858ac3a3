//! One tenant's flood and another's latency, in time. What a quiet tenant waits for is counted exactly by the node's own
//! tests; here it is measured as a caller sees it, by hand with `cargo xtask drill neighbours`.
//!
//! Client, flood and server share one machine, which real ones do not. So the flood runs at the lowest priority: it takes
//! what the server and the quiet client leave of the processors, and is still far more than the server can do.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use leasehold_tests::{Server, binary, free_port, until};
use serde_json::Value;

use crate::{figures, median};

/// The quiet tenant's load: one caller, 100 locks a second. With one client this workload is an acquire and a release of a
/// name that no flood uses.
const QUIET: &[&str] = &["handoff", "--clients", "1", "--rate", "100"];
/// Floods: of single calls, and of frames with many.
const FLOODS: &[(&str, &[&str])] = &[
    ("64 connections", &["cycle", "--clients", "64"]),
    ("1,000 calls on one stream", &["cycle", "--clients", "1000", "--transport", "grpc"]),
];
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
    for (what, flood) in FLOODS {
        let (mut alone, mut beside, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=rounds {
            alone.push(world.quiet_p99());
            beside.push(world.quiet_p99_beside(&world.flooding, flood));
            // For comparison: the same flood by the quiet tenant itself, behind which its calls wait in line.
            if is_strict {
                own.push(world.quiet_p99_beside(&world.quiet, flood));
            }
            println!(
                "round {round}, {what}: p99 in ms alone {:.2?}, beside {:.2?}, own {:.2?}",
                alone.last(),
                beside.last(),
                own.last()
            );
        }
        let (before, during) = (median(&alone), median(&beside));
        let ratio = during / before;
        println!("{what}: median p99 {before:.2} ms alone, {during:.2} ms beside another tenant's flood");
        if is_strict {
            println!("{what}: {:.2} ms beside a flood of its own", median(&own));
        }
        println!("{what}: {ratio:.2} times that without, promised {PROMISED}");
        assert!(!is_strict || ratio < PROMISED, "{what}: {ratio:.2} times");
    }
}

/// A server with two tenants.
struct World {
    server: Server,
    quiet: PathBuf,
    flooding: PathBuf,
    seconds: u64,
    _directory: tempfile::TempDir,
}

impl World {
    fn start(seconds: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::spawn_with(free_port(), &directory.path().join("data"), &["--auth"]);
        server.wait_ready();
        let (quiet, flooding) = (directory.path().join("quiet.key"), directory.path().join("flooding.key"));
        let world = Self { server, quiet, flooding, seconds, _directory: directory };
        world.let_in("quiet", &world.quiet);
        world.let_in("flooding", &world.flooding);
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

    /// Fails if any call of the quiet tenant does.
    fn quiet_p99(&self) -> f64 {
        let mut command = Command::new(binary::path());
        let measured = self.bench(&mut command, QUIET, self.seconds, &self.quiet).output().unwrap();
        figures(&measured)["latencyMs"]["p99"].as_f64().unwrap()
    }

    fn quiet_p99_beside(&self, tenant: &Path, flood: &[&str]) -> f64 {
        let before = self.last_token();
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(binary::path());
        // Longer than what it is there to disturb.
        let flood = self.bench(&mut nice, flood, self.seconds + 2, tenant).spawn().unwrap();
        let mut flood = Flood(Some(flood));
        until("the flood to come in", PATIENCE, || (self.last_token() > before + 1_000).then_some(()));
        let p99 = self.quiet_p99();
        let lasted = flood.0.as_mut().unwrap().try_wait().unwrap().is_none();
        let ended = flood.0.take().unwrap().wait_with_output().unwrap();
        // Some of a flood may be turned away.
        let told: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
        println!("flood: {} locks a second{}", told["perSecond"], if lasted { "" } else { ", too short" });
        p99
    }

    fn bench<'a>(
        &self,
        command: &'a mut Command,
        load: &[&str],
        seconds: u64,
        credential: &Path,
    ) -> &'a mut Command {
        command.arg("bench").args(load).args(["--output", "json", "--duration", &format!("{seconds}s")]);
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
struct Flood(Option<Child>);

impl Drop for Flood {
    fn drop(&mut self) {
        if let Some(flood) = &mut self.0 {
            // It may have ended already.
            let _ = flood.kill();
            let _ = flood.wait();
        }
    }
}
