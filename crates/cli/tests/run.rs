//! `leasehold run` as a process, against a server inside this one whose network can be cut.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use leasehold::testing::TestServer;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::process::{Child, Command};

/// For what takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn leasehold(server: &TestServer, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).env("LEASEHOLD_SERVER", server.url()).stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn output(server: &TestServer, args: &[&str]) -> (i32, String, String) {
    let output =
        tokio::time::timeout(PATIENCE, leasehold(server, args).output()).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A command that writes its pid and its child's, and stays.
struct Staying {
    run: Child,
    pids: PathBuf,
    _folder: tempfile::TempDir,
}

impl Staying {
    async fn start(server: &TestServer, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let script = format!("sleep 1000 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", pids.display());
        let args: Vec<&str> =
            ["run"].iter().chain(args).chain(&["--", "sh", "-c", &script]).copied().collect();
        let run = leasehold(server, &args).stderr(Stdio::piped()).spawn().unwrap();
        until("the command to run", || pids.exists()).await;
        Self { run, pids, _folder: folder }
    }

    /// The command and its child.
    fn pids(&self) -> Vec<Pid> {
        let text = std::fs::read_to_string(&self.pids).unwrap();
        text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
    }

    fn any_alive(&self) -> bool {
        self.pids().into_iter().any(is_alive)
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.run.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

/// Not there, or dead and waiting to be reaped by whoever adopted it.
fn is_alive(pid: Pid) -> bool {
    let stat = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat");
    let is_zombie = std::fs::read_to_string(stat)
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')));
    test_kill_process(pid).is_ok() && !is_zombie
}

async fn until(what: &str, mut look: impl FnMut() -> bool) {
    let looked = tokio::time::timeout(PATIENCE, async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    looked.await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_the_commands_own_or_says_why_there_was_none() {
    let server = TestServer::start().await;
    assert_eq!(output(&server, &["run", "a", "--", "sh", "-c", "exit 7"]).await.0, 7);
    assert_eq!(output(&server, &["run", "a", "--", "sh", "-c", "kill -9 $$"]).await.0, 128 + 9);
    let (code, _, errors) = output(&server, &["run", "a", "--", "no-such-command"]).await;
    assert_eq!((code, errors.as_str()), (1, "leasehold: no-such-command: no such command\n"));
    let _held = server.client().acquire("a").await.unwrap();
    let (code, _, errors) = output(&server, &["run", "--wait", "0s", "a", "--", "true"]).await;
    assert_eq!((code, errors.lines().count()), (75, 1), "{errors}");
    let (code, _, errors) = output(&server, &["run", "--on-unavailable", "run", "a", "--", "true"]).await;
    assert_eq!((code, errors.lines().count()), (64, 1), "{errors}");
    server.cut();
    let (code, _, errors) = output(&server, &["run", "b", "--", "true"]).await;
    assert_eq!((code, errors.lines().count()), (69, 1), "{errors}");
    let args = ["run", "--class", "efficiency", "--on-unavailable", "run", "b", "--", "echo", "anyway"];
    assert_eq!(output(&server, &args).await.1, "anyway\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_knows_its_lock_also_when_nested() {
    let server = TestServer::start().await;
    let show = "echo $LEASEHOLD_RESOURCE $LEASEHOLD_FENCING_TOKEN ${#LEASEHOLD_LEASE_ID} $LEASEHOLD_OWNER_ID $LEASEHOLD_EXPIRES_AT";
    let inner = format!("{} run b --owner inner -- sh -c '{show}'; {show}", env!("CARGO_BIN_EXE_leasehold"));
    let (code, shown, errors) =
        output(&server, &["run", "--owner", "outer", "a", "--", "sh", "-c", &inner]).await;
    assert_eq!(code, 0, "{errors}");
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines[0][..4], ["b", "2", "36", "inner"]);
    assert_eq!(lines[1][..4], ["a", "1", "36", "outer"]);
    assert!(lines[0][4].ends_with('Z'), "{shown}");
}

/// It runs without a lock; the token of the lock around it is not its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_nested_command_without_a_lock_finds_no_token() {
    let server = TestServer::start().await;
    let show = "echo $LEASEHOLD_RESOURCE [$LEASEHOLD_FENCING_TOKEN$LEASEHOLD_LEASE_ID$LEASEHOLD_EXPIRES_AT]";
    let inner = format!(
        "{} run --server http://127.0.0.1:1 --class efficiency --on-unavailable run b -- sh -c '{show}'",
        env!("CARGO_BIN_EXE_leasehold")
    );
    let (code, shown, errors) = output(&server, &["run", "a", "--", "sh", "-c", &inner]).await;
    assert_eq!((code, shown.as_str()), (0, "b []\n"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_is_free_when_the_command_has_ended_and_its_children_with_it() {
    let server = TestServer::start().await;
    let mut staying = Staying::start(&server, &["a"]).await;
    let [command, left_behind] = staying.pids()[..] else { panic!("two pids") };
    kill_process(command, Signal::TERM).unwrap();
    assert_eq!(staying.run.wait().await.unwrap().code(), Some(128 + 15));
    assert!(!is_alive(left_behind));
    server.client().acquire("a").no_wait().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_takes_the_command_and_its_children_along() {
    let server = TestServer::start().await;
    let staying = Staying::start(&server, &["a"]).await;
    staying.signal(Signal::KILL);
    until("the group to die", || !staying.any_alive()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_the_command() {
    let server = TestServer::start().await;
    let mut staying = Staying::start(&server, &["a"]).await;
    staying.signal(Signal::HUP);
    assert_eq!(staying.run.wait().await.unwrap().code(), Some(128 + 1));
    assert!(!staying.any_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_wait_ends_at_once_and_leaves_the_queue() {
    let server = TestServer::start().await;
    let _held = server.client().acquire("a").await.unwrap();
    let mut waiting = leasehold(&server, &["run", "a", "--", "true"]).spawn().unwrap();
    server.until_waiters("a", 1).await;
    kill_process(Pid::from_raw(i32::try_from(waiting.id().unwrap()).unwrap()).unwrap(), Signal::INT).unwrap();
    let status =
        tokio::time::timeout(Duration::from_secs(15), waiting.wait()).await.expect("at once").unwrap();
    assert_eq!(status.code(), Some(128 + 2));
    server.until_waiters("a", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_takes_the_lock_away_ends_the_command() {
    let server = TestServer::start().await;
    let told = tempfile::NamedTempFile::new().unwrap();
    let line = format!("echo \"$LEASEHOLD_LOST$LEASEHOLD_FENCING_TOKEN\" > {}", told.path().display());
    let mut staying = Staying::start(&server, &["--on-lost", &line, "a"]).await;
    server.force_release("a").await;
    assert_eq!(staying.run.wait().await.unwrap().code(), Some(76));
    assert!(!staying.any_alive());
    assert_eq!(std::fs::read_to_string(told.path()).unwrap(), "an operator took it away\n");
}

/// Twenty locks at once whose network is cut: each command is dead when its successor is granted the lock.
async fn dead_before_the_successor(ttl: &str, fault: impl Fn(&TestServer, &Staying)) {
    let server = TestServer::start().await;
    let successor = server.direct_client();
    let mut staying = Vec::new();
    for n in 0..20 {
        let resource = format!("r{n}");
        let command = Staying::start(&server, &["--ttl", ttl, &resource]).await;
        let waiting = tokio::spawn(successor.acquire(resource.clone()).into_future());
        server.until_waiters(&resource, 1).await;
        staying.push((command, waiting));
    }
    for (command, _) in &staying {
        fault(&server, command);
    }
    for (command, waiting) in staying {
        let granted = tokio::spawn(async move {
            let guard = tokio::time::timeout(2 * PATIENCE, waiting).await.expect("a grant").unwrap().unwrap();
            (guard, command.any_alive(), command)
        });
        let (guard, any_alive, mut command) = granted.await.unwrap();
        assert!(!any_alive, "{} was granted while the command before lived", guard.resource());
        drop(command.run.start_kill());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_network_cut_the_command_is_dead_before_the_successor_1s() {
    dead_before_the_successor("1s", |server, _| server.cut()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_network_cut_the_command_is_dead_before_the_successor_3s() {
    dead_before_the_successor("3s", |server, _| server.cut()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "by hand, with any ttl up to 30 s: `cargo xtask drill run 15s`"]
async fn with_the_network_cut_the_command_is_dead_before_the_successor_by_hand() {
    let ttl = std::env::var("LEASEHOLD_TTL").unwrap_or_else(|_| "15s".to_owned());
    dead_before_the_successor(&ttl, |server, _| server.cut()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_does_not_let_its_command_outlive_the_lock() {
    dead_before_the_successor("3s", |_, command| command.signal(Signal::STOP)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_reads_the_terminal_works() {
    let server = TestServer::start().await;
    let line = format!(
        "{} run a -- sh -c 'read word; echo got $word'; read after; echo then $after",
        env!("CARGO_BIN_EXE_leasehold")
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("LEASEHOLD_SERVER", server.url());
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut keyboard = script.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut keyboard, b"one\ntwo\n").await.unwrap();
    let shown = tokio::time::timeout(PATIENCE, script.wait_with_output()).await.expect("it ends").unwrap();
    drop(keyboard);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("got one") && shown.contains("then two"), "{shown}");
}
