//! The built binary on real engines: killed without warning, started again, and moved from one journal to another.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::leasehold;
use tempfile::TempDir;

/// A server on a journal.
struct Serving(support::Serving);

impl Serving {
    fn start(journal: &str, data: &Path) -> Self {
        let data = data.to_str().unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--journal", journal, "--data", data];
        Self(support::Serving::start(&args))
    }

    fn ask(&self, args: &[&str]) -> Value {
        json(leasehold(args).args(["--output", "json", "--server", &self.0.url]))
    }

    fn acquire(&self, resource: &str) -> Value {
        self.ask(&["acquire", resource, "--ttl", "1m"])
    }

    /// Asks until it is the active node: after a crash it first makes sure that nobody else is.
    fn until_active(&self) {
        let active = (0..1_000).any(|_| self.ask(&["status"])["role"] == "active");
        assert!(active, "it never took the journal over");
    }

    /// As a crash would.
    fn kill(self) {
        self.0.kill();
    }
}

fn json(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn token(grant: &Value) -> u64 {
    grant["fencingToken"].as_u64().unwrap_or_else(|| panic!("a grant: {grant}"))
}

fn survives_a_kill(journal: &str) {
    let data = TempDir::new().unwrap();
    let server = Serving::start(journal, data.path());
    let held = server.acquire("held");
    server.kill();
    let server = Serving::start(journal, data.path());
    server.until_active();
    server.ask(&["renew", held["leaseId"].as_str().unwrap()]);
    let next = server.acquire("next");
    assert!(token(&next) > token(&held), "{held} {next}");
    server.ask(&["release", held["leaseId"].as_str().unwrap()]);
    assert!(token(&server.acquire("held")) > token(&next));
}

#[test]
fn on_postgres_a_killed_server_goes_on_where_it_was() {
    survives_a_kill(leasehold_testbed::postgres().url());
}

#[test]
fn on_etcd_a_killed_server_goes_on_where_it_was() {
    survives_a_kill(&leasehold_testbed::etcd().url().replace("http://", "etcd://"));
}

#[test]
fn a_journal_is_copied_to_another_engine() {
    let (data, engine) = (TempDir::new().unwrap(), leasehold_testbed::postgres());
    let server = Serving::start("embedded", data.path());
    let held = server.acquire("held");
    server.kill();
    let operator = ["--actor", "ada", "--reason", "to the database", "--output", "json"];
    let copied = json(
        leasehold(&["journal", "copy", "--from", "embedded", "--to", engine.url(), "--data"])
            .arg(data.path())
            .args(operator),
    );
    assert!(copied["tokenFloor"].as_u64().unwrap() > token(&held), "{copied}");
    let server = Serving::start(engine.url(), data.path());
    assert!(token(&server.acquire("next")) > copied["tokenFloor"].as_u64().unwrap());
    let status = server.ask(&["status"]);
    assert_eq!((&status["journal"], &status["durability"]), (&"postgres".into(), &"durable".into()));
    server.kill();

    // Within one engine, under another name.
    let again = |name: &str| {
        let mut command =
            leasehold(&["journal", "copy", "--from", engine.url(), "--to", engine.url(), "--data"]);
        command.arg(data.path()).args(["--to-cluster", name]).args(operator);
        command
    };
    let twice = json(&mut again("second"));
    assert!(twice["tokenFloor"].as_u64() > copied["tokenFloor"].as_u64(), "{twice}");
    let refused = again("second").output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && told.contains("not empty") && told.contains("--to-cluster"),
        "{told}"
    );
    assert_eq!(again("main").output().unwrap().status.code(), Some(64), "the same journal");
}
