//! A server that stands still for longer than a ttl (N3): time that nobody could renew in ends no lease.

use std::time::Duration;

use leasehold_history::{Answer, Mode, Record};
use leasehold_tests::{Seed, Server, Stopwatch, Story, until};
use rustix::process::Signal;
use serde_json::json;

const TTL_MS: u64 = 1_000;

#[test]
fn a_paused_server_ends_no_lease_for_the_time_it_slept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let (lease, story) = (Seed::from_env(11).uuid(), Story::begin("stall"));
    let op = story.acquires("holder", "held", &lease);
    let token = http.acquire("held", &lease, TTL_MS).unwrap().token();
    story.told(op, Answer::Granted { token, ttl_ms: TTL_MS });

    server.signal(Signal::STOP);
    let op = story.renews("holder", &lease);
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
    story.told(op, Answer::Renewed { ttl_ms: asked.json()["ttlMs"].as_u64().unwrap() });
    story.judge();
}

#[test]
fn a_lease_that_nobody_renews_ends_after_its_ttl_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(12);
    let (first, story) = (seed.uuid(), Story::begin("stall"));
    let (sent, asked_at) = (Stopwatch::start(), story.at());
    let mut acquire = |client: &str, lease: &str| {
        let op = story.acquires(client, "short", lease);
        let answer = http.acquire("short", lease, TTL_MS).unwrap();
        let granted = answer.is_acquired().then(|| Answer::Granted { token: answer.token(), ttl_ms: TTL_MS });
        story.told(op, granted.unwrap_or(Answer::NotGranted));
        answer
    };
    let token = acquire("first", &first).token();
    let next = until("the next grant", Duration::from_secs(10), || {
        Some(acquire("next", &seed.uuid())).filter(leasehold_tests::Answer::is_acquired)
    });
    let (after, at) = (sent.elapsed(), story.at());
    assert!(
        after >= Duration::from_millis(TTL_MS),
        "PROMISE BROKEN: expired {after:?} after it was asked for"
    );
    assert!(next.token() > token, "PROMISE BROKEN: {} after {token}", next.token());
    for (client, token, from) in [("first", token, asked_at), ("next", next.token(), at)] {
        let (client, resource, mode) = (client.into(), "short".into(), Mode::Exclusive);
        let until = from + 1_000 * TTL_MS;
        story.add(&Record::Held { at, from, until, client, resource, token, mode, permit: None });
    }
    story.judge();
    let late = http.delete(&format!("/v1/locks/{first}")).unwrap();
    assert_eq!((late.status, late.json()["reason"].clone()), (410, json!("expired")), "{}", late.body);
}
