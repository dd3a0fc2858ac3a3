//! `leasehold dev-cluster`: brings nodes up, tells of them, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Far beyond what anything here takes on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn leasehold(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).args(["--output", "json"]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A cluster that was brought up.
struct DevCluster {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    servers: String,
    pids: Vec<i32>,
}

impl DevCluster {
    async fn start() -> Self {
        let mut command = leasehold(&["dev-cluster", "--engine", "etcd", "--nodes", "3"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let up = line(&mut lines).await;
        let pid = |node: &Value| i32::try_from(node["pid"].as_i64().unwrap()).unwrap();
        let pids = up["nodes"].as_array().unwrap().iter().map(pid).collect();
        Self { process, lines, servers: up["servers"].as_str().unwrap().to_owned(), pids }
    }

    async fn ask(&self, args: &[&str]) -> Value {
        let asked = leasehold(args).env("LEASEHOLD_SERVER", &self.servers).output().await.unwrap();
        assert!(asked.status.success(), "{asked:?}");
        serde_json::from_slice(&asked.stdout).unwrap()
    }

    async fn roles(&self) -> Vec<String> {
        let status = self.ask(&["status"]).await;
        let nodes = status["nodes"].as_array().unwrap();
        let mut roles: Vec<_> = nodes.iter().map(|node| node["role"].as_str().unwrap().to_owned()).collect();
        roles.sort();
        roles
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    async fn until_nothing_is_left(&self) {
        until("every node is gone", async || self.pids.iter().all(|pid| is_gone(*pid))).await;
    }
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it says something").unwrap();
    serde_json::from_str(&line.expect("it goes on")).unwrap()
}

async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let reached = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Gone, or dead and not yet fetched by whoever inherited it.
fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_come_up_survive_a_kill_and_end_with_the_command() {
    let mut cluster = DevCluster::start().await;
    let three = ["active", "standby", "standby"];
    until("the nodes know each other", async || cluster.roles().await == three).await;
    assert_eq!(cluster.ask(&["acquire", "r", "--ttl", "1m"]).await["fencingToken"], 1);

    kill_process(Pid::from_raw(cluster.pids[0]).unwrap(), Signal::KILL).unwrap();
    let ended = line(&mut cluster.lines).await;
    assert_eq!(ended["ended"], "node-1", "{ended}");
    until("there is an active node again", async || {
        let asked = leasehold(&["acquire", "s"]).env("LEASEHOLD_SERVER", &cluster.servers).output().await;
        asked.unwrap().status.success()
    })
    .await;

    cluster.signal(Signal::INT);
    let status = tokio::time::timeout(PATIENCE, cluster.process.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
    cluster.until_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_kills_the_command_kills_its_nodes() {
    let cluster = DevCluster::start().await;
    cluster.signal(Signal::KILL);
    cluster.until_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_to_share_it_says_what_to_do() {
    for args in [&["dev-cluster"][..], &["dev-cluster", "--journal", "embedded"]] {
        let refused = leasehold(args).env_remove("LEASEHOLD_JOURNAL").output().await.unwrap();
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(64), "{told}");
        assert!(told.contains("--journal postgres://") && told.contains("--engine etcd"), "{told}");
    }
}
