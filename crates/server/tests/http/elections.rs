//! Elections: who leads, hand-over, what observers see, what a restart keeps.

use std::sync::Arc;

use leasehold_journal::MemoryJournal;
use leasehold_server::RawConfig;
use leasehold_types::Durability;
use serde_json::{Value, json};

use crate::support::{Client, PATIENCE, TestServer};

async fn campaign(server: &TestServer, owner: &str, body: Value) -> Value {
    let mut asked = json!({"ownerId": owner, "ttlMs": 30_000});
    asked.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    server.post("/v1/elections/reports/campaign", asked).await.json()
}

/// A candidate that waits; its answer comes later.
async fn candidate(server: &TestServer, owner: &str, waiters: usize) -> Client {
    let mut client = server.connect().await;
    let body = json!({"ownerId": owner, "ttlMs": 30_000, "waitMs": 60_000, "value": owner}).to_string();
    let headers = [("content-type", "application/json")];
    client.write("POST", "/v1/elections/reports/campaign", &headers, body.as_bytes()).await;
    server.until_waiting(waiters).await;
    client
}

async fn resign(server: &TestServer, leader: &Value, to: Option<&str>) -> crate::support::Answer {
    let mut body = json!({"leaseId": leader["leaseId"]});
    if let Some(to) = to {
        body["to"] = to.into();
    }
    server.post("/v1/elections/reports/resign", body).await
}

fn token(value: &Value) -> u64 {
    value["fencingToken"].as_u64().unwrap_or_else(|| panic!("a token: {value}"))
}

#[tokio::test]
async fn one_leads_and_the_others_wait_in_order() {
    let server = TestServer::start().await;
    let empty = server.get("/v1/elections/reports").await.json();
    assert_eq!(empty, json!({"name": "reports", "leader": null, "candidates": []}));
    let ann = campaign(&server, "ann", json!({"value": "http://ann"})).await;
    assert_eq!((&ann["elected"], &ann["resource"]), (&json!(true), &json!("election/reports")));
    let lost = campaign(&server, "zoe", json!({})).await;
    assert_eq!((&lost["elected"], &lost["holders"][0]["ownerId"]), (&json!(false), &json!("ann")));

    let mut bob = candidate(&server, "bob", 1).await;
    let _cid = candidate(&server, "cid", 2).await;
    let shown = server.get("/v1/elections/reports").await.json();
    assert_eq!(shown["candidates"], json!(["bob", "cid"]));
    assert_eq!(
        (&shown["leader"]["ownerId"], &shown["leader"]["value"]),
        (&json!("ann"), &json!("http://ann"))
    );
    assert_eq!(token(&shown["leader"]), token(&ann));

    let resigned = resign(&server, &ann, None).await;
    assert_eq!(resigned.json(), json!({"resigned": true, "name": "reports", "fencingToken": token(&ann)}));
    let bob = bob.answer().await.json();
    assert_eq!(bob["elected"], true, "the first in line");
    assert!(token(&bob) > token(&ann));
    assert_eq!(resign(&server, &ann, None).await.json(), resigned.json(), "a retry has the same answer");
    let renewed =
        server.post(&format!("/v1/locks/{}/renew", bob["leaseId"].as_str().unwrap()), json!({})).await;
    assert_eq!(renewed.status, 200, "leadership is a lease");
}

#[tokio::test]
async fn leadership_is_handed_to_a_named_candidate_or_kept() {
    let server = TestServer::start().await;
    let ann = campaign(&server, "ann", json!({})).await;
    let mut bob = candidate(&server, "bob", 1).await;
    let mut cid = candidate(&server, "cid", 2).await;
    resign(&server, &ann, Some("nobody")).await.problem(404, "not_found");
    assert_eq!(
        server.get("/v1/elections/reports").await.json()["leader"]["ownerId"],
        "ann",
        "nothing changed"
    );
    assert_eq!(resign(&server, &ann, Some("cid")).await.status, 200);
    let cid = cid.answer().await.json();
    assert_eq!((&cid["elected"], &cid["ownerId"]), (&json!(true), &json!("cid")));
    let shown = server.get("/v1/elections/reports").await.json();
    assert_eq!((&shown["leader"]["ownerId"], &shown["candidates"]), (&json!("cid"), &json!(["bob"])));
    assert_eq!(resign(&server, &cid, None).await.status, 200);
    assert!(token(&bob.answer().await.json()) > token(&cid));
}

#[tokio::test]
async fn a_lease_of_something_else_and_one_that_has_ended_are_refused() {
    let server = TestServer::start().await;
    let ann = campaign(&server, "ann", json!({})).await;
    let lock = server.acquire("other", "ann").await;
    for call in ["proclaim", "resign"] {
        let mut body = json!({"leaseId": lock["leaseId"]});
        if call == "proclaim" {
            body["value"] = "x".into();
        }
        let answer = server.post(&format!("/v1/elections/reports/{call}"), body).await;
        assert!(answer.problem(400, "bad_request").contains("leaseId"), "{answer:?}");
    }
    let held = server.get(&format!("/v1/locks/{}", lock["leaseId"].as_str().unwrap())).await;
    assert_eq!(held.status, 200, "the lock is still held");
    assert_eq!(resign(&server, &ann, None).await.status, 200);
    let late = json!({"leaseId": ann["leaseId"], "value": "x"});
    server.post("/v1/elections/reports/proclaim", late).await.problem(410, "lease_not_held");
    let long = json!({"ownerId": "ann", "value": "x".repeat(4097)});
    server.post("/v1/elections/reports/campaign", long).await.problem(400, "bad_request");
    let mode = json!({"ownerId": "ann", "mode": "shared"});
    server.post("/v1/elections/reports/campaign", mode).await.problem(400, "bad_request");
}

struct Observed(Client);

impl Observed {
    async fn open(server: &TestServer) -> Self {
        let mut client = server.connect().await;
        let answer = client.send("GET", "/v1/elections/reports/observe", &[], b"").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
        Self(client)
    }

    async fn next(&mut self) -> (String, Value) {
        let frame = tokio::time::timeout(PATIENCE, self.0.read_until(b"\n\n")).await.expect("an event");
        let text = String::from_utf8(frame).unwrap();
        let part = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        (part("event: ").to_owned(), serde_json::from_str(part("data: ")).unwrap())
    }
}

#[tokio::test]
async fn an_observer_sees_vacant_leader_value_vacant_leader_with_growing_tokens() {
    let server = TestServer::start().await;
    let mut observed = Observed::open(&server).await;
    assert_eq!(observed.next().await, ("vacant".into(), json!({})));
    let ann = campaign(&server, "ann", json!({"value": "one"})).await;
    let (event, leader) = observed.next().await;
    assert_eq!(
        (event.as_str(), &leader["ownerId"], &leader["value"]),
        ("leader", &json!("ann"), &json!("one"))
    );
    let body = json!({"leaseId": ann["leaseId"], "value": "two"});
    let proclaimed = server.post("/v1/elections/reports/proclaim", body).await.json();
    assert_eq!(proclaimed, json!({"proclaimed": true, "name": "reports", "fencingToken": token(&ann)}));
    let (event, leader) = observed.next().await;
    assert_eq!((event.as_str(), &leader["value"], token(&leader)), ("leader", &json!("two"), token(&ann)));

    // Another election, and a handover within one commit: the vacancy is told all the same.
    server.post("/v1/elections/other/campaign", json!({"ownerId": "zoe"})).await;
    let mut bob = candidate(&server, "bob", 1).await;
    assert_eq!(resign(&server, &ann, Some("bob")).await.status, 200);
    let bob = bob.answer().await.json();
    assert_eq!(observed.next().await, ("vacant".into(), json!({"fencingToken": token(&ann)})));
    let (event, leader) = observed.next().await;
    assert_eq!((event.as_str(), token(&leader), &leader["value"]), ("leader", token(&bob), &json!("bob")));
    assert!(token(&bob) > token(&ann));
    assert_eq!(resign(&server, &bob, None).await.status, 200);
    assert_eq!(observed.next().await, ("vacant".into(), json!({"fencingToken": token(&bob)})));

    let mut late = Observed::open(&server).await;
    assert_eq!(late.next().await.0, "vacant");
    server.server.shutdown().await.unwrap();
    observed.0.until_closed().await;
}

#[tokio::test]
async fn the_value_and_the_leader_survive_a_restart() {
    let journal = Arc::new(MemoryJournal::with_durability(Durability::Durable));
    let server = TestServer::on(Arc::clone(&journal), RawConfig::default()).await;
    let ann = campaign(&server, "ann", json!({"value": "one"})).await;
    let body = json!({"leaseId": ann["leaseId"], "value": "two"});
    assert_eq!(server.post("/v1/elections/reports/proclaim", body).await.status, 200);
    server.server.shutdown().await.unwrap();
    let server = TestServer::on(journal, RawConfig::default()).await;
    let mut observed = Observed::open(&server).await;
    let (event, leader) = observed.next().await;
    assert_eq!((event.as_str(), &leader["value"], token(&leader)), ("leader", &json!("two"), token(&ann)));
}
