//! Status, health, metrics, the page, the document; journals in trouble.

use std::sync::Arc;

use leasehold_journal::{MemoryJournal, Room};
use leasehold_server::RawConfig;
use leasehold_types::Durability;
use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn the_status_says_who_answers() {
    let server = TestServer::start().await;
    server.acquire("a", "ann").await;
    let status = server.get("/v1/status").await.json();
    for (field, value) in [
        ("node", json!("test")),
        ("role", json!("active")),
        ("epoch", json!(1)),
        ("durability", json!("durable")),
        ("locksHeld", json!(1)),
        ("stalled", json!(false)),
        ("room", json!(true)),
        ("activeAddress", json!(server.server.url())),
    ] {
        assert_eq!(status[field], value, "{field} in {status}");
    }
    assert_eq!(status["nodes"][0]["role"], "active");
}

#[tokio::test]
async fn health_page_and_document_are_served() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/healthz").await.text(), "ok\n");
    assert_eq!(server.get("/readyz").await.text(), "ready\n");
    assert_eq!(server.get("/openapi.json").await.text(), leasehold_api::OPENAPI);
    let page = server.get("/").await;
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(page.text().contains("<title>Leasehold</title>"), "{}", page.text());
    for file in ["/console/app.js", "/console/pages/locks.js", "/console/console.css", "/console/icon.svg"] {
        let file = server.get(file).await;
        assert_eq!((file.status, file.header("x-content-type-options")), (200, Some("nosniff")));
    }
    server.get("/console/../../Cargo.toml").await.problem(404, "not_found");
    let head = server.connect().await.send_head("/healthz").await;
    assert_eq!(head, 200);
}

#[tokio::test]
async fn metrics_count_by_prefix_and_never_name_a_resource() {
    let server = TestServer::start().await;
    let grant = server.acquire("billing/secret-name", "ann").await;
    server.post("/v1/locks/acquire", json!({"resource": "billing/secret-name", "ownerId": "bob"})).await;
    server.post(&format!("/v1/locks/{}/renew", grant["leaseId"].as_str().unwrap()), json!({})).await;
    server
        .post(
            "/v1/resources/billing%2Fsecret-name/force-release",
            json!({"actorId": "o", "reason": "r", "all": true}),
        )
        .await;
    server.post(&format!("/v1/locks/{}/renew", grant["leaseId"].as_str().unwrap()), json!({})).await;
    server.acquire("billing/second", "ann").await;
    let metrics = server.get("/metrics").await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let scope = "tenant=\"default\",prefix=\"billing\"";
    for line in [
        format!("lock_acquire_attempts_total{{{scope},mode=\"exclusive\"}} 3"),
        format!("lock_acquire_success_total{{{scope},mode=\"exclusive\"}} 2"),
        format!("lock_acquire_contended_total{{{scope},mode=\"exclusive\"}} 1"),
        format!("lock_acquire_latency_seconds_count{{{scope}}} 3"),
        format!("lock_renewals_total{{{scope}}} 1"),
        format!("lock_force_release_total{{{scope}}} 1"),
        format!("lock_hold_seconds_count{{{scope}}} 1"),
        "lock_renewal_failures_total{result=\"lease_not_held\"} 1".to_owned(),
        "locks_held 1".to_owned(),
        "node_role{role=\"active\"} 1".to_owned(),
        "node_epoch 1".to_owned(),
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line} in\n{}", metrics.text());
    }
    assert!(!metrics.text().contains("secret-name"));
    let mut families: Vec<_> =
        metrics.text().lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    families.sort_unstable();
    families.dedup_by_key(|line| line.split(' ').next().unwrap());
    assert!(families.len() > 20, "{families:?}");
}

#[tokio::test]
async fn without_room_acquires_are_refused_and_releases_go_on() {
    let server = TestServer::start().await;
    let grant = server.acquire("a", "ann").await;
    server.journal.set_room(Room::Reserve);
    let refused = async {
        loop {
            let answer = server.post("/v1/locks/acquire", json!({"resource": "b", "ownerId": "ann"})).await;
            if answer.status != 200 {
                return answer;
            }
            server.delete(&format!("/v1/locks/{}", answer.json()["leaseId"].as_str().unwrap())).await;
        }
    };
    let refused =
        tokio::time::timeout(crate::support::PATIENCE, refused).await.expect("acquires are refused");
    let detail = refused.problem(503, "store_unavailable");
    assert!(detail.contains("disk full"), "{detail}");
    assert_eq!(server.delete(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await.status, 200);
    server.journal.set_room(Room::Plenty);
    let again = async {
        while server.post("/v1/locks/acquire", json!({"resource": "b", "ownerId": "ann"})).await.status != 200
        {
        }
    };
    tokio::time::timeout(crate::support::PATIENCE, again).await.expect("acquires resume");
}

#[tokio::test]
async fn a_journal_that_can_lose_gives_no_correctness_locks() {
    let journal = Arc::new(MemoryJournal::with_durability(Durability::Lossy));
    let server = TestServer::on(journal, RawConfig::default()).await;
    let body = |class: &str| json!({"resource": "a", "ownerId": "ann", "class": class});
    server.post("/v1/locks/acquire", body("correctness")).await.problem(412, "class_not_supported");
    let grant = server.post("/v1/locks/acquire", body("efficiency")).await.json();
    assert_eq!((&grant["acquired"], &grant["guarantee"]), (&true.into(), &"best_effort".into()));
}

#[tokio::test]
async fn a_restart_keeps_locks_and_tokens_grow() {
    let journal = Arc::new(MemoryJournal::with_durability(Durability::Durable));
    let first = TestServer::on(journal.clone(), RawConfig::default()).await;
    let grant = first.acquire("a", "ann").await;
    first.server.shutdown().await.unwrap();
    let second = TestServer::on(journal, RawConfig::default()).await;
    let record = second.get(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await.json();
    assert_eq!(record["fencingToken"], grant["fencingToken"]);
    let next = second.acquire("b", "ann").await;
    assert!(next["fencingToken"].as_u64() > grant["fencingToken"].as_u64());
    assert_eq!(second.get("/v1/status").await.json()["epoch"], 2);
}
