//! `leasehold drill` as users run it, on real engines: with a fence the late write is refused, without one it is accepted,
//! and the exit code says so. Every engine sees the floor of F6b (a holder stopped past its ttl) and of F6c (a write held
//! in the network): `cargo xtask drill late-write --times 1000` runs more of them.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use support::Serving;

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

/// With a fence every late write is refused; without it is accepted, and the successor's write is lost. `fenced` and
/// `unfenced` give the arguments of the n-th drill.
fn holds(fenced: impl Fn(usize) -> Vec<String>, unfenced: impl Fn(usize) -> Vec<String>) {
    let both = [How::Paused, How::Delayed];
    let rounds: Vec<How> = both.into_iter().flat_map(|how| std::iter::repeat_n(how, times())).collect();
    let with = rounds.iter().enumerate().map(|(n, how)| drill(*how, &fenced(n)));
    let without = both.iter().enumerate().map(|(n, how)| {
        let mut command = drill(*how, &unfenced(rounds.len() + n));
        command.arg("--without-fence");
        command
    });
    let outputs = outputs(with.chain(without).collect());
    let (with, without) = outputs.split_at(rounds.len());
    for (n, (how, output)) in rounds.iter().zip(with).enumerate() {
        let report = report(output, 0, &format!("{how:?} {:?}", fenced(n)));
        assert_eq!((&report["passed"], &report["lateWrite"]), (&true.into(), &"refused".into()), "{report}");
        assert_eq!(report["found"], "written by worker B", "{report}");
        assert!(tokens_grow(&report), "{report}");
    }
    for (how, output) in both.iter().zip(without) {
        let report = report(output, 1, &format!("{how:?} without a fence"));
        assert_eq!(
            (&report["passed"], &report["lateWrite"]),
            (&false.into(), &"accepted".into()),
            "{report}"
        );
        assert_eq!(report["found"], "written by worker A, too late", "{report}");
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Accepted writes never go down in token (S4).
fn tokens_grow(report: &Value) -> bool {
    let timeline = report["timeline"].as_array().unwrap();
    let accepted = timeline.iter().filter(|entry| entry["event"] == "accepted");
    accepted.map(|entry| entry["fencingToken"].as_u64().unwrap()).is_sorted()
}

fn on(address: &str) {
    holds(|_| words(&["--fence", address]), |_| words(&["--fence", address]));
}

#[test]
fn sqlite_without_naming_anything() {
    holds(|_| Vec::new(), |_| Vec::new());
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

#[test]
fn the_reference_storage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let storage = Serving::start(&["fence", "storage", "--dir", path, "--listen", "127.0.0.1:0"]);
    on(&storage.url.replace("http://", "storage://"));
}

/// A service that knows nothing of fences, behind `fence proxy`; without the fence workers go to it straight.
#[test]
fn a_service_behind_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let service = format!("http://{}", service());
    let more = ["--state", &state, "--lock", "/{name}=drill/{name}", "--listen", "127.0.0.1:0"];
    let proxy = Serving::start(&[&["fence", "proxy", "--upstream", &service][..], &more].concat());
    let place =
        |url: &str, n| words(&["--fence", &format!("{url}/{n}"), "--resource", &format!("drill/{n}")]);
    holds(|n| place(&proxy.url, n), |n| place(&service, n));
}

/// Keeps what is put, shows it when asked: a service as it might be anywhere.
fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(HashMap::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let kept = kept.clone();
            std::thread::spawn(move || serve(stream.unwrap(), &kept));
        }
    });
    address
}

fn serve(stream: TcpStream, kept: &Mutex<HashMap<String, Vec<u8>>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| !line.trim().is_empty()) {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            head.push(line);
        }
        let length = head.iter().filter_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        let mut body = vec![0; length.sum()];
        reader.read_exact(&mut body).ok()?;
        let path = head[0].split(' ').nth(1)?.to_owned();
        let mut kept = kept.lock().unwrap();
        if head[0].starts_with("PUT") {
            kept.insert(path.clone(), body);
        }
        let shown = kept.get(&path).cloned().unwrap_or_default();
        let answer =
            [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", shown.len()).into_bytes(), shown]
                .concat();
        reader.get_mut().write_all(&answer).ok()?;
    }
}

fn psql(url: &str, sql: &str) -> String {
    let output = Command::new("psql").args(["-X", "-A", "-t", "-d", url, "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
