//! Waiting over HTTP: in order, woken once, gone with the connection.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, TestServer};

async fn wait_for(server: &TestServer, resource: &str, owner: &str, wait_ms: u64) -> Client {
    let mut client = server.connect().await;
    let body = json!({"resource": resource, "ownerId": owner, "waitMs": wait_ms}).to_string();
    client.write("POST", "/v1/locks/acquire", &[("content-type", "application/json")], body.as_bytes()).await;
    client
}

async fn release(server: &TestServer, grant: &Value) {
    let released = server.delete(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await;
    assert_eq!(released.status, 200, "{released:?}");
}

#[tokio::test]
async fn waiters_are_served_in_the_order_of_asking_each_once() {
    const WAITERS: usize = 256;
    let server = TestServer::start().await;
    let mut held = server.acquire("a", "first").await;
    let mut waiters = Vec::new();
    for n in 0..WAITERS {
        waiters.push(wait_for(&server, "a", &format!("w{n}"), 60_000).await);
        server.until_waiting(n + 1).await;
    }
    let mut last_token = held["fencingToken"].as_u64().unwrap();
    for (n, mut waiter) in waiters.into_iter().enumerate() {
        release(&server, &held).await;
        held = waiter.answer().await.json();
        assert_eq!((&held["acquired"], &held["ownerId"]), (&true.into(), &format!("w{n}").as_str().into()));
        // One hand-over wakes one waiter. The node publishes its counts just after it has answered.
        server.until_waiting(WAITERS - n - 1).await;
        let token = held["fencingToken"].as_u64().unwrap();
        assert!(token > last_token);
        last_token = token;
    }
}

#[tokio::test]
async fn a_waiter_leaves_with_its_connection() {
    let server = TestServer::start().await;
    let held = server.acquire("a", "ann").await;
    let gone = wait_for(&server, "a", "gone", 60_000).await;
    server.until_waiting(1).await;
    let mut stays = wait_for(&server, "a", "stays", 60_000).await;
    server.until_waiting(2).await;
    drop(gone);
    server.until_waiting(1).await;
    release(&server, &held).await;
    assert_eq!(stays.answer().await.json()["ownerId"], "stays");
}

#[tokio::test]
async fn a_wait_that_ends_is_a_refusal() {
    let server = TestServer::start().await;
    server.acquire("a", "ann").await;
    let mut waiter = wait_for(&server, "a", "bob", 50).await;
    let refused = waiter.answer().await;
    assert_eq!((refused.status, &refused.json()["acquired"]), (200, &false.into()));
}

#[tokio::test]
async fn shutdown_answers_those_who_wait() {
    let server = TestServer::start().await;
    server.acquire("a", "ann").await;
    let mut waiter = wait_for(&server, "a", "bob", 60_000).await;
    server.until_waiting(1).await;
    let ended =
        tokio::time::timeout(Duration::from_secs(10), server.server.shutdown()).await.expect("ends in time");
    ended.unwrap();
    waiter.answer().await.problem(503, "not_active");
    waiter.until_closed().await;
}
