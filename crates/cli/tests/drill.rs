//! `leasehold drill` as users run it, on real engines: with a fence the late write is refused, without one it is accepted,
//! and the exit code says so. Every engine sees the floor of F6b (a holder stopped past its ttl) and of F6c (a write held
//! in the network): `cargo xtask drill late-write --times 1000` runs more of them.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// How often each drill is held when nothing else is said.
const FLOOR: usize = 5;
/// Drills that are under way at the same time: each mostly waits for a ttl to pass.
const AT_ONCE: usize = 6;

/// How a drill is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Paused,
    Delayed,
}

fn times() -> usize {
    std::env::var("LEASEHOLD_DRILLS").ok().and_then(|times| times.parse().ok()).unwrap_or(FLOOR)
}

fn drill(how: How, more: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["drill", "--ttl", "1s", "--output", "json"]).args(more);
    if how == How::Delayed {
        command.arg("--delay-write");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("LEASEHOLD_SERVER");
    command
}

/// Runs them, a few at a time.
fn outputs(commands: Vec<Command>) -> Vec<Output> {
    let mut commands = commands.into_iter();
    let mut outputs = Vec::new();
    loop {
        let started: Vec<_> =
            commands.by_ref().take(AT_ONCE).map(|mut command| command.spawn().unwrap()).collect();
        if started.is_empty() {
            return outputs;
        }
        outputs.extend(started.into_iter().map(|child| child.wait_with_output().unwrap()));
    }
}

/// What a drill reported, which must have ended with this code.
fn report(output: &Output, code: i32, what: &str) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{what}: {said}{shown}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{what}: {said}{shown}"))
}

/// With a fence every late write is refused; without it is accepted, and the successor's write is lost.
fn holds(fenced: &[&str], unfenced: &[&str]) {
    let args = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (fenced, mut unfenced) = (args(fenced), args(unfenced));
    unfenced.push("--without-fence".to_owned());
    let rounds = || [How::Paused, How::Delayed].into_iter().flat_map(|how| std::iter::repeat_n(how, times()));
    let mut commands: Vec<_> = rounds().map(|how| drill(how, &fenced)).collect();
    commands.extend([How::Paused, How::Delayed].map(|how| drill(how, &unfenced)));
    let outputs = outputs(commands);
    let (without, with) = outputs.split_last_chunk::<2>().unwrap();
    for (how, output) in rounds().zip(without) {
        let what = format!("{how:?} {fenced:?}");
        let report = report(output, 0, &what);
        assert_eq!((&report["passed"], &report["lateWrite"]), (&true.into(), &"refused".into()), "{report}");
        assert!(tokens_grow(&report), "{report}");
    }
    for output in with {
        let report = report(output, 1, &format!("{unfenced:?}"));
        assert_eq!(
            (&report["passed"], &report["lateWrite"]),
            (&false.into(), &"accepted".into()),
            "{report}"
        );
        assert_eq!(report["found"], "written by worker A, too late", "{report}");
    }
}

/// Accepted writes never go down in token (S4).
fn tokens_grow(report: &Value) -> bool {
    let timeline = report["timeline"].as_array().unwrap();
    let accepted = timeline.iter().filter(|entry| entry["event"] == "accepted");
    accepted.map(|entry| entry["fencingToken"].as_u64().unwrap()).is_sorted()
}

fn on(address: &str) {
    holds(&["--fence", address], &["--fence", address]);
}

#[test]
fn sqlite_without_naming_anything() {
    holds(&[], &[]);
}

#[test]
fn postgres() {
    let server = leasehold_testbed::postgres();
    on(server.url());
    let left = psql(server.url(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
    assert_eq!(left.trim(), "0", "a drill leaves nothing behind");
}

#[test]
fn mariadb() {
    on(leasehold_testbed::mariadb().url());
}

#[test]
fn redis() {
    on(leasehold_testbed::redis().url());
}

#[test]
fn etcd() {
    on(&leasehold_testbed::etcd().url().replace("http://", "etcd://"));
}

fn psql(url: &str, sql: &str) -> String {
    let output = Command::new("psql").args(["-X", "-A", "-t", "-d", url, "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
