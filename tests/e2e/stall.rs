//! A server that stands still for longer than a ttl (N3): time that nobody could renew in ends no lease.

use std::time::Duration;

use leasehold_tests::{Seed, Server, Stopwatch, until};
use rustix::process::Signal;
use serde_json::json;

const TTL_MS: u64 = 1_000;

#[test]
fn a_paused_server_ends_no_lease_for_the_time_it_slept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let lease = Seed::from_env(11).uuid();
    let token = http.acquire("held", &lease, TTL_MS).unwrap().token();

    server.signal(Signal::STOP);
    let asked = std::thread::scope(|scope| {
        let renewal =
            scope.spawn(|| server.http().post(&format!("/v1/locks/{lease}/renew"), &json!({})).unwrap());
        let watch = Stopwatch::start();
        until("a pause of three ttls", Duration::from_secs(10), || {
            (watch.elapsed() > Duration::from_millis(3 * TTL_MS)).then_some(())
        });
        server.signal(Signal::CONT);
        renewal.join().unwrap()
    });
    assert_eq!(asked.status, 200, "the renewal lay in the socket all the while: {}", asked.body);
    assert_eq!(asked.json()["locks"][0]["fencingToken"], json!(token));
}

#[test]
fn a_lease_that_nobody_renews_ends_after_its_ttl_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(12);
    let first = seed.uuid();
    let sent = Stopwatch::start();
    let token = http.acquire("short", &first, TTL_MS).unwrap().token();
    let next = until("the next grant", Duration::from_secs(10), || {
        let answer = http.acquire("short", &seed.uuid(), TTL_MS).unwrap();
        answer.is_acquired().then_some(answer)
    });
    let after = sent.elapsed();
    assert!(after >= Duration::from_millis(TTL_MS), "expired {after:?} after it was asked for");
    assert!(next.token() > token);
    let late = http.delete(&format!("/v1/locks/{first}")).unwrap();
    assert_eq!((late.status, late.json()["reason"].clone()), (410, json!("expired")), "{}", late.body);
}
