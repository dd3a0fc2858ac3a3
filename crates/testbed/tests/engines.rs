//! Every engine starts, answers on its address, and is gone with its guard.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use leasehold_testbed::{
    Server, Setup, etcd_cluster, mariadb, postgres, postgres_with, redis, zookeeper_with,
};

fn address(endpoint: &str) -> &str {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    host.split_once('/').map_or(host, |(host, _)| host)
}

/// Sends bytes and reads until the answer contains the text.
fn ask(endpoint: &str, question: &[u8], expected: &str) {
    let mut stream = TcpStream::connect(address(endpoint)).unwrap();
    stream.write_all(question).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains(expected) {
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..read]);
    }
}

/// A zombie of a process has no address space; both it and a missing process count as ended.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("VmSize")
}

fn gone(server: Server) {
    let (dir, pids) = (server.dir().to_owned(), pids(&server));
    assert!(dir.exists() && pids.iter().all(|&pid| runs(pid)));
    drop(server);
    assert!(!dir.exists(), "{} is left behind", dir.display());
    assert!(!pids.iter().any(|&pid| runs(pid)), "one of {pids:?} is left behind");
}

fn pids(server: &Server) -> Vec<u32> {
    (0..server.endpoints().len()).map(|member| server.pid(member)).collect()
}

#[test]
fn redis_answers_survives_a_crash_and_leaves_nothing() {
    let server = redis();
    ask(server.url(), b"SET k kept\r\n", "+OK");
    server.kill(0);
    assert!(TcpStream::connect(address(server.url())).is_err());
    server.restart(0);
    ask(server.url(), b"GET k\r\n", "kept");
    server.pause(0);
    gone(server);
}

#[expect(clippy::disallowed_methods, reason = "etcd tells nobody that it has elected a leader")]
fn healthy(endpoint: &str) {
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address(endpoint)).unwrap();
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        if answer.contains("200 OK") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{endpoint} did not become healthy");
}

#[test]
fn etcd_members_answer_and_one_can_be_lost() {
    let server = etcd_cluster(3);
    server.kill(0);
    // Health of another member needs a quorum, and a new leader if the lost one was it.
    healthy(&server.endpoints()[1]);
    server.restart(0);
    gone(server);
}

#[test]
fn zookeeper_answers() {
    let server = zookeeper_with(&Setup::default().set("4lw.commands.whitelist", "ruok"));
    ask(server.url(), b"ruok", "imok");
    gone(server);
}

#[test]
fn mariadb_greets() {
    let server = mariadb();
    ask(server.url(), b"", "MariaDB");
    gone(server);
}

#[test]
fn postgres_is_durable_unless_told_otherwise() {
    for (server, expected) in [(postgres(), "on"), (postgres_with(&Setup::default().without_fsync()), "off")]
    {
        assert_eq!(psql(&server, "SHOW fsync"), expected);
        gone(server);
    }
}

fn psql(server: &Server, sql: &str) -> String {
    let exe = std::fs::read_link(Path::new(&format!("/proc/{}/exe", server.pid(0)))).unwrap();
    let psql = exe.parent().unwrap().join("psql");
    let output = std::process::Command::new(psql).args(["-At", "-c", sql, server.url()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether the shared memory is there that the server has now.
fn memory_of(server: &Server) -> impl Fn() -> bool + use<> {
    let lock_file = std::fs::read_to_string(server.dir().join("data/postmaster.pid")).unwrap();
    let noted: Vec<String> =
        lock_file.lines().nth(6).unwrap().split_whitespace().map(str::to_owned).collect();
    move || {
        let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().any(|line| line.split_whitespace().take(2).eq(noted.iter().map(String::as_str)))
    }
}

/// A killed PostgreSQL cannot remove its shared memory; its guard does.
#[test]
fn a_killed_postgres_leaves_no_shared_memory() {
    let server = postgres();
    let there = memory_of(&server);
    assert!(there());
    server.kill(0);
    server.restart(0);
    assert_eq!(psql(&server, "SELECT 1"), "1");
    drop(server);
    assert!(!there());
}

#[test]
fn a_restarted_postgres_keeps_its_own_shared_memory() {
    let server = postgres();
    server.restart(0);
    let there = memory_of(&server);
    assert!(there());
    server.kill(0);
    drop(server);
    assert!(!there());
}

#[test]
fn a_panic_leaves_nothing() {
    let (send, receive) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let server = redis();
        send.send((server.dir().to_owned(), server.pid(0))).unwrap();
        panic!("on purpose");
    });
    assert!(test.join().is_err());
    let (dir, pid) = receive.recv().unwrap();
    assert!(!dir.exists() && !runs(pid));
}

/// Not a test: what the next one kills. Starts engines, says where they are, and waits for its end.
#[test]
fn victim() {
    if std::env::var_os("LEASEHOLD_VICTIM").is_none() {
        return;
    }
    let servers = [redis(), postgres()];
    for server in &servers {
        println!("\nengine {} {}", server.pid(0), server.dir().display());
    }
    println!("\nready");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn engines_die_with_a_killed_process() {
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--nocapture"])
        .env("LEASEHOLD_VICTIM", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let engines: Vec<(u32, String)> =
        lines.take_while(|line| line != "ready").filter_map(|line| engine(&line)).collect();
    assert_eq!(engines.len(), 2);
    victim.kill().unwrap();
    victim.wait().unwrap();
    for (pid, dir) in engines {
        ended(pid);
        std::fs::remove_dir_all(dir).unwrap();
    }
}

fn engine(line: &str) -> Option<(u32, String)> {
    let (pid, dir) = line.strip_prefix("engine ")?.split_once(' ')?;
    Some((pid.parse().ok()?, dir.to_owned()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the end of a process that is not our child has no event to wait on"
)]
fn ended(pid: u32) {
    for _ in 0..1_000 {
        if !runs(pid) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{pid} outlived the process that started it");
}
