//! A restart seen by clients that wait and watch.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_tests::{Http, Seed, Server, binary, free_port, until};

#[test]
fn a_waiting_command_gets_its_lock_across_kill9() {
    let dir = tempfile::tempdir().unwrap();
    let (data, port) = (dir.path().join("data"), free_port());
    let first = Seed::from_env(30).uuid();
    let server = Server::start_on(port, &data);
    let token = server.http().acquire("hot", &first, 60_000).unwrap().token();
    let waiter = leasehold(port, &["acquire", "hot", "--wait", "60s", "--output", "json"]);
    wait_for_waiter(&mut server.http());
    server.kill9();

    let server = Server::start_on(port, &data);
    wait_for_waiter(&mut server.http());
    assert_eq!(server.http().delete(&format!("/v1/locks/{first}")).unwrap().token(), token);
    let output = waiter.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let granted: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(granted["fencingToken"].as_u64().unwrap() > token, "{granted}");
}

#[test]
fn a_watch_goes_on_after_kill9_without_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let (data, port) = (dir.path().join("data"), free_port());
    let mut seed = Seed::from_env(31);
    let server = Server::start_on(port, &data);
    let mut http = server.http();
    assert!(http.acquire("w/0", &seed.uuid(), 60_000).unwrap().is_acquired());
    let mut watcher =
        leasehold(port, &["watch", "w/", "--after", "0.0", "--count", "40", "--output", "json"]);
    // It watches when it has told of something; before that, a server that cannot be reached is an error.
    let mut told = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let first = told.next().unwrap().unwrap();
    for number in 1..14 {
        assert!(http.acquire(&format!("w/{number}"), &seed.uuid(), 60_000).unwrap().is_acquired());
    }
    server.kill9();

    let server = Server::start_on(port, &data);
    let mut http = server.http();
    for number in 14..40 {
        assert!(http.acquire(&format!("w/{number}"), &seed.uuid(), 60_000).unwrap().is_acquired());
    }
    let lines = std::iter::once(first).chain(told.map(Result::unwrap));
    let resources: Vec<String> = lines.map(|line| resource(&line)).collect();
    let output = watcher.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected: Vec<String> = (0..40).map(|number| format!("w/{number}")).collect();
    assert_eq!(resources, expected, "every grant once, in order");
}

fn resource(line: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    event["data"]["resource"].as_str().unwrap_or(line).to_owned()
}

fn leasehold(port: u16, args: &[&str]) -> Child {
    Command::new(binary::path())
        .args(args)
        .env("LEASEHOLD_SERVER", format!("http://127.0.0.1:{port}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for_waiter(http: &mut Http) {
    until("a waiter", Duration::from_secs(20), || {
        let explained = http.get("/v1/resources/hot").ok()?.json();
        explained["waiters"].as_array().is_some_and(|waiters| !waiters.is_empty()).then_some(())
    });
}
