//! Sessions as a client sees them.

use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn one_keep_alive_renews_all_and_the_end_frees_all() {
    let server = TestServer::start().await;
    let opened = server
        .post("/v1/sessions", json!({"ownerId": "ann", "ttlSeconds": 20, "labels": {"job": "x"}}))
        .await;
    assert_eq!((opened.status, &opened.json()["ttlMs"]), (200, &20_000.into()));
    let session = opened.json()["sessionId"].as_str().unwrap().to_owned();
    for name in ["a", "b"] {
        let grant =
            server.post("/v1/locks/acquire", json!({"resource": name, "sessionId": session})).await.json();
        assert_eq!((&grant["acquired"], &grant["ownerId"]), (&true.into(), &"ann".into()));
        let ttl_ms = grant["ttlMs"].as_u64().unwrap();
        assert!((1..=20_000).contains(&ttl_ms), "what is left of the session's: {ttl_ms}");
    }
    let other = json!({"resource": "c", "sessionId": session, "ownerId": "bob"});
    let detail = server.post("/v1/locks/acquire", other).await.problem(400, "bad_request");
    assert!(detail.contains("ownerId"), "{detail}");

    let renewed = server.post(&format!("/v1/sessions/{session}/renew"), json!({})).await.json();
    assert_eq!((&renewed["lockCount"], &renewed["ended"]), (&2.into(), &json!([])));
    let record = server.get(&format!("/v1/sessions/{session}")).await.json();
    assert_eq!(
        (&record["ownerId"], &record["labels"]["job"], &record["lockCount"]),
        (&"ann".into(), &"x".into(), &2.into())
    );
    let page = server.get("/v1/sessions").await.json();
    assert_eq!(
        (&page["sessions"][0]["sessionId"], &page["nextCursor"]),
        (&session.as_str().into(), &json!(null))
    );
    let locks = server.get(&format!("/v1/locks?sessionId={session}")).await.json();
    assert_eq!(locks["locks"].as_array().unwrap().len(), 2);

    let closed = server.delete(&format!("/v1/sessions/{session}")).await.json();
    assert_eq!(closed, json!({"ended": true, "sessionId": session, "released": 2}));
    server.acquire("a", "bob").await;
    let gone = server.post(&format!("/v1/sessions/{session}/renew"), json!({})).await;
    gone.problem(410, "lease_not_held");
    assert_eq!(gone.json()["reason"], "session_ended");
}

#[tokio::test]
async fn endings_without_the_holder_are_told_until_they_are_seen() {
    let server = TestServer::start().await;
    let session = server.post("/v1/sessions", json!({"ownerId": "ann"})).await.json()["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let grant = server.post("/v1/locks/acquire", json!({"resource": "a", "sessionId": session})).await.json();
    server
        .post("/v1/resources/a/force-release", json!({"actorId": "op", "reason": "stuck", "all": true}))
        .await;
    let path = format!("/v1/sessions/{session}/renew");
    for _ in 0..2 {
        let renewed = server.post(&path, json!({})).await.json();
        assert_eq!(
            (&renewed["ended"][0]["leaseId"], &renewed["ended"][0]["reason"]),
            (&grant["leaseId"], &"forced".into())
        );
    }
    let seen = server.post(&path, json!({"seenEnded": [grant["leaseId"]]})).await.json();
    assert_eq!(seen["ended"], json!([]));
    server.post(&path, json!({"seenEnded": ["x"]})).await.problem(400, "bad_request");
}

#[tokio::test]
async fn an_operator_ends_a_session_with_a_reason() {
    let server = TestServer::start().await;
    let session = server.post("/v1/sessions", json!({"ownerId": "ann"})).await.json()["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let ended = server.delete(&format!("/v1/sessions/{session}?actorId=op&reason=host+is+gone")).await;
    assert_eq!(ended.status, 200);
    let entry = server.get("/v1/audit").await.json()["entries"][0].clone();
    assert_eq!(
        (&entry["action"], &entry["reason"], &entry["resource"]),
        (&"SESSION_END".into(), &"host is gone".into(), &json!(null))
    );
}
