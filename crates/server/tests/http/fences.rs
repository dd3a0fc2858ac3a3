//! What fences report, and what grants say because of it.

use leasehold_server::RawConfig;
use serde_json::{Value, json};

use crate::support::TestServer;

async fn guarantee(server: &TestServer, resource: &str) -> Value {
    server.acquire(resource, "ann").await["guarantee"].clone()
}

#[tokio::test]
async fn grants_under_a_reported_prefix_say_fenced() {
    let server = TestServer::start().await;
    assert_eq!(guarantee(&server, "books/2025").await, "lease_only");
    let report = json!({"prefix": "books/", "enforces": true});
    let answer = server.post("/v1/fences/report", report).await;
    assert_eq!((answer.status, &answer.json()["countsForMs"]), (200, &300_000.into()), "{answer:?}");
    assert_eq!(guarantee(&server, "books/2026").await, "fenced");
    assert_eq!(guarantee(&server, "payroll").await, "lease_only", "another prefix is none of its business");
    let listed = server.get("/v1/locks?prefix=books/").await.json();
    assert_eq!(listed["locks"][0]["guarantee"], "fenced");
    let efficient = json!({"resource": "books/x", "ownerId": "ann", "class": "efficiency"});
    let efficient = server.post("/v1/locks/acquire", efficient).await.json();
    assert_eq!(efficient["guarantee"], "best_effort", "a fence does not make up for that");

    let shadow = json!({"prefix": "books/", "enforces": false});
    assert_eq!(server.post("/v1/fences/report", shadow).await.json()["countsForMs"], 0);
    assert_eq!(guarantee(&server, "books/2027").await, "lease_only");
}

#[tokio::test]
async fn rejections_are_shown_and_counted() {
    let server = TestServer::start().await;
    let rejection = json!({"resource": "books/2026", "fencingToken": 33, "highestToken": 34});
    let report = json!({"prefix": "books/", "enforces": true, "rejections": [rejection, rejection]});
    assert_eq!(server.post("/v1/fences/report", report).await.status, 200);
    let explained = server.get("/v1/resources/books%2F2026").await.json();
    assert_eq!(explained["fenceRejections"], 2);
    assert_eq!(server.get("/v1/resources/books%2F2025").await.json()["fenceRejections"], 0);
    let metrics = server.get("/metrics").await;
    let line = "lock_dual_owner_suspected_total{tenant=\"default\",prefix=\"books\"} 2";
    assert!(metrics.text().lines().any(|found| found == line), "{}", metrics.text());
}

#[tokio::test]
async fn whoever_renews_what_is_anothers_is_suspected() {
    let server = TestServer::start().await;
    let renew = async |lease: &Value| {
        let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
        server.post(&path, json!({})).await.problem(410, "lease_not_held");
    };
    let force = json!({"actorId": "op", "reason": "stuck", "all": true});
    let first = server.acquire("books/2026", "ann").await;
    assert_eq!(server.post("/v1/resources/books%2F2026/force-release", force).await.status, 200);
    let second = server.acquire("books/2026", "bob").await;
    renew(&first).await;
    server.until_counted("lock_dual_owner_suspected_total{tenant=\"default\",prefix=\"books\"} 1").await;
    server.until_counted("lock_renewal_failures_total{result=\"lease_not_held\"} 1").await;
    let released = server.delete(&format!("/v1/locks/{}", second["leaseId"].as_str().unwrap())).await;
    assert_eq!(released.status, 200);
    // One that was given back is over for whoever held it.
    server.acquire("books/2026", "cid").await;
    renew(&second).await;
    renew(&first).await;
    server.until_counted("lock_dual_owner_suspected_total{tenant=\"default\",prefix=\"books\"} 2").await;
}

#[tokio::test]
async fn a_report_that_is_none_is_refused() {
    let server = TestServer::start().await;
    for report in [
        json!({}),
        json!({"prefix": "a\n", "enforces": true}),
        json!({"prefix": "a".repeat(513), "enforces": true}),
        json!({"prefix": "a", "enforces": true, "rejections": [{"resource": "a", "fencingToken": 0, "highestToken": 1}]}),
        json!({"prefix": "a", "enforces": true, "rejections": vec![json!({"resource": "a", "fencingToken": 1, "highestToken": 2}); 101]}),
        json!({"prefix": "a", "enforces": true, "stage": "enforce"}),
    ] {
        server.post("/v1/fences/report", report).await.problem(400, "bad_request");
    }
}

#[tokio::test]
async fn grants_under_a_declared_prefix_say_fenced() {
    let raw: RawConfig = toml::from_str("[[policies]]\nprefix = \"books/\"\nfence = \"postgres\"\n").unwrap();
    let server = TestServer::with(raw).await;
    assert_eq!(guarantee(&server, "books/2026").await, "fenced");
    assert_eq!(guarantee(&server, "payroll").await, "lease_only");
}
