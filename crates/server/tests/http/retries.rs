//! A retried request acts once.

use leasehold_types::ids;
use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn the_same_lease_id_is_the_same_acquire() {
    let server = TestServer::start().await;
    let lease = leasehold_types::LeaseId::from_bytes(ids::random()).to_string();
    let body = json!({"resource": "a", "ownerId": "ann", "leaseId": lease});
    let first = server.post("/v1/locks/acquire", body.clone()).await.json();
    let second = server.post("/v1/locks/acquire", body).await.json();
    assert_eq!((&first["acquired"], &first["leaseId"]), (&true.into(), &lease.as_str().into()));
    assert_eq!(first["fencingToken"], second["fencingToken"]);
    let other = json!({"resource": "b", "ownerId": "ann", "leaseId": lease});
    server.post("/v1/locks/acquire", other).await.problem(422, "idempotency_mismatch");
    server.delete(&format!("/v1/locks/{lease}")).await;
    let dead = json!({"resource": "a", "ownerId": "ann", "leaseId": lease});
    server.post("/v1/locks/acquire", dead).await.problem(410, "lease_not_held");
}

#[tokio::test]
async fn the_same_key_is_the_same_request() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let body = json!({"resource": "a", "ownerId": "ann"});
    let first = client.post_keyed("/v1/locks/acquire", "k1", body.clone()).await.json();
    let second = client.post_keyed("/v1/locks/acquire", "k1", body).await.json();
    assert_eq!(first["leaseId"], second["leaseId"]);
    let other = json!({"resource": "b", "ownerId": "ann"});
    client.post_keyed("/v1/locks/acquire", "k1", other).await.problem(422, "idempotency_mismatch");

    let session = json!({"ownerId": "ann"});
    let first = client.post_keyed("/v1/sessions", "k2", session.clone()).await.json();
    assert_eq!(
        client.post_keyed("/v1/sessions", "k2", session).await.json()["sessionId"],
        first["sessionId"]
    );

    let forced = json!({"actorId": "op", "reason": "stuck", "all": true});
    let path = "/v1/resources/a/force-release";
    let first = client.post_keyed(path, "k3", forced.clone()).await.json();
    assert_eq!(client.post_keyed(path, "k3", forced).await.json()["auditSeq"], first["auditSeq"]);
}
