//! Each call as a client sees it.

use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn a_lock_is_acquired_shown_renewed_and_released() {
    let server = TestServer::start().await;
    let grant = server.acquire("billing/close", "ann").await;
    assert_eq!(grant["resource"], "billing/close");
    assert_eq!(
        (&grant["ttlMs"], &grant["mode"], &grant["class"]),
        (&15_000.into(), &"exclusive".into(), &"correctness".into())
    );
    assert_eq!(grant["guarantee"], "lease_only");
    let lease = grant["leaseId"].as_str().unwrap();

    let record = server.get(&format!("/v1/locks/{lease}")).await;
    assert_eq!((record.status, &record.json()["leaseId"]), (200, &grant["leaseId"]));
    assert_eq!(record.json()["fencingToken"], grant["fencingToken"]);

    let renewed = server
        .post(
            &format!("/v1/locks/{lease}/renew"),
            json!({"ttlSeconds": 30, "missed": 2, "lastError": "timeout"}),
        )
        .await;
    assert_eq!((renewed.status, &renewed.json()["ttlMs"]), (200, &30_000.into()), "{renewed:?}");
    assert_eq!(
        renewed.json()["locks"],
        json!([{"resource": "billing/close", "fencingToken": grant["fencingToken"]}])
    );
    let record = server.get(&format!("/v1/locks/{lease}")).await.json();
    assert_eq!(
        (&record["renewals"], &record["missed"], &record["lastError"]),
        (&1.into(), &2.into(), &"timeout".into())
    );

    let released = server.delete(&format!("/v1/locks/{lease}")).await;
    assert_eq!(
        released.json(),
        json!({"released": true, "resource": "billing/close", "fencingToken": grant["fencingToken"]})
    );
    let again = server.delete(&format!("/v1/locks/{lease}")).await;
    assert_eq!((again.status, again.json()), (200, released.json()), "a retry has the same answer");
    let gone = server.get(&format!("/v1/locks/{lease}")).await;
    gone.problem(410, "lease_not_held");
    assert_eq!(
        (&gone.json()["reason"], &gone.json()["fencingToken"]),
        (&"released".into(), &grant["fencingToken"])
    );
    server.post(&format!("/v1/locks/{lease}/renew"), json!({})).await.problem(410, "lease_not_held");
}

#[tokio::test]
async fn a_renewal_may_have_no_body() {
    let server = TestServer::start().await;
    let grant = server.acquire("a", "ann").await;
    let path = format!("/v1/locks/{}/renew", grant["leaseId"].as_str().unwrap());
    let mut client = server.connect().await;
    let renewed = client.send("POST", &path, &[("content-length", "0")], b"").await;
    assert_eq!((renewed.status, &renewed.json()["renewed"]), (200, &true.into()));
}

#[tokio::test]
async fn a_held_lock_is_refused_with_its_holder() {
    let server = TestServer::start().await;
    let grant = server.acquire("a", "ann").await;
    let refused = server.post("/v1/locks/acquire", json!({"resource": "a", "ownerId": "bob"})).await;
    assert_eq!(refused.status, 200);
    let refused = refused.json();
    assert_eq!((&refused["acquired"], &refused["waiters"]), (&false.into(), &0.into()));
    assert_eq!(refused["holders"][0]["ownerId"], "ann");
    assert_eq!(refused["holders"][0]["fencingToken"], grant["fencingToken"]);
    assert_eq!(refused["holders"][0].get("leaseId"), None, "the capability is the holder's alone");
}

#[tokio::test]
async fn semaphores_give_permits_and_shared_locks_are_shared() {
    let server = TestServer::start().await;
    let body = |owner: &str| json!({"resource": "pool", "ownerId": owner, "mode": "semaphore", "limit": 2});
    for (owner, permit) in [("a", 0), ("b", 1)] {
        let grant = server.post("/v1/locks/acquire", body(owner)).await.json();
        assert_eq!((&grant["acquired"], &grant["permit"]), (&true.into(), &permit.into()));
    }
    assert_eq!(server.post("/v1/locks/acquire", body("c")).await.json()["acquired"], false);
    for owner in ["a", "b"] {
        let shared = json!({"resource": "doc", "ownerId": owner, "mode": "shared"});
        assert_eq!(server.post("/v1/locks/acquire", shared).await.json()["acquired"], true);
    }
}

#[tokio::test]
async fn locks_are_listed_in_order_by_page_without_lease_ids() {
    let server = TestServer::start().await;
    for name in ["b/2", "a/1", "b/1", "c"] {
        server.acquire(name, if name == "c" { "cat" } else { "ann" }).await;
    }
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["locks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| lock["resource"].as_str().unwrap().to_owned())
            .collect()
    };
    let page = server.get("/v1/locks?pageSize=3").await.json();
    assert_eq!(names(&page), ["a/1", "b/1", "b/2"]);
    assert!(page["locks"].as_array().unwrap().iter().all(|lock| lock.get("leaseId").is_none()));
    let rest = server.get(&format!("/v1/locks?cursor={}", page["nextCursor"].as_str().unwrap())).await.json();
    assert_eq!((names(&rest), &rest["nextCursor"]), (vec!["c".to_owned()], &serde_json::Value::Null));
    assert_eq!(names(&server.get("/v1/locks?prefix=b%2F").await.json()), ["b/1", "b/2"]);
    assert_eq!(names(&server.get("/v1/locks?ownerId=cat").await.json()), ["c"]);
    assert!(names(&server.get("/v1/locks?heldLongerThanMs=3600000").await.json()).is_empty());
    assert!(names(&server.get("/v1/locks?missedAtLeast=1").await.json()).is_empty());
}

#[tokio::test]
async fn a_resource_is_explained_under_its_encoded_name() {
    let server = TestServer::start().await;
    let never = server.get("/v1/resources/never%2Fseen").await;
    assert_eq!(
        (never.status, &never.json()["holders"], &never.json()["lastToken"]),
        (200, &json!([]), &json!(null))
    );
    let first = server.acquire("team/a:b ü%", "ann").await;
    server.delete(&format!("/v1/locks/{}", first["leaseId"].as_str().unwrap())).await;
    let second = server.acquire("team/a:b ü%", "bob").await;
    let explained = server.get("/v1/resources/team%2Fa:b%20%C3%BC%25").await.json();
    assert_eq!(explained["resource"], "team/a:b ü%");
    assert_eq!(
        (&explained["holders"][0]["ownerId"], &explained["lastToken"]),
        (&"bob".into(), &second["fencingToken"])
    );
    assert_eq!(
        (&explained["endings"][0]["ownerId"], &explained["endings"][0]["reason"]),
        (&"ann".into(), &"released".into())
    );
    let raw = server.get("/v1/resources/team/a").await.problem(404, "not_found");
    assert!(raw.contains("%2F"), "{raw}");
}

#[tokio::test]
async fn operators_force_a_lock_free_and_the_audit_log_says_so() {
    let server = TestServer::start().await;
    let grant = server.acquire("a/b", "ann").await;
    let lease = grant["leaseId"].as_str().unwrap();
    let path = "/v1/resources/a%2Fb/force-release";
    let stale = json!({"actorId": "op", "reason": "stuck", "fencingToken": 999});
    let refused = server.post(path, stale).await;
    refused.problem(409, "stale_token");
    assert_eq!(refused.json()["currentTokens"], json!([grant["fencingToken"]]));
    let forced = server
        .post(path, json!({"actorId": "op", "reason": "stuck", "fencingToken": grant["fencingToken"]}))
        .await;
    assert_eq!(
        (forced.status, &forced.json()["released"][0]["ownerId"], &forced.json()["auditSeq"]),
        (200, &"ann".into(), &1.into())
    );
    let gone = server.post(&format!("/v1/locks/{lease}/renew"), json!({})).await;
    gone.problem(410, "lease_not_held");
    assert_eq!(gone.json()["reason"], "forced");
    let nobody =
        server.post(path, json!({"actorId": "op", "reason": "to be sure", "all": true})).await.json();
    assert_eq!(nobody, json!({"released": [], "auditSeq": 2}));

    let audit = server.get("/v1/audit?resource=a/b&pageSize=1").await.json();
    let entry = &audit["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["actorId"], &entry["reason"]),
        (&"FORCE_RELEASE".into(), &"op".into(), &"stuck".into())
    );
    assert_eq!((&entry["fencingToken"], &entry["identity"]), (&grant["fencingToken"], &json!(null)));
    assert_eq!(audit["nextAfter"], 1);
    let rest = server.get("/v1/audit?after=1").await.json();
    assert_eq!(rest["entries"][0]["prevHash"], entry["hash"]);
    let verified = server.get("/v1/audit/verify").await.json();
    assert_eq!((&verified["intact"], &verified["entries"]), (&true.into(), &2.into()));
    assert_eq!(verified["head"], rest["entries"][0]["hash"]);
}

#[tokio::test]
async fn tokens_are_validated_for_people() {
    let server = TestServer::start().await;
    let grant = server.acquire("a", "ann").await;
    let ask = |token: serde_json::Value| json!({"resource": "a", "fencingToken": token});
    let current = server.post("/v1/tokens/validate", ask(grant["fencingToken"].clone())).await.json();
    assert_eq!(current, json!({"current": true, "lastToken": grant["fencingToken"]}));
    let other = server.post("/v1/tokens/validate", ask(json!(77))).await.json();
    assert_eq!(other["current"], false);
    let unseen = server.post("/v1/tokens/validate", json!({"resource": "b", "fencingToken": 1})).await.json();
    assert_eq!(unseen, json!({"current": false, "lastToken": null}));
}

#[tokio::test]
async fn ids_that_nobody_knows() {
    let server = TestServer::start().await;
    let id = "8c3f5a0e-5d0c-4e0c-9d8a-1f2e3d4c5b6a";
    server.get(&format!("/v1/locks/{id}")).await.problem(404, "not_found");
    server.get(&format!("/v1/sessions/{id}")).await.problem(404, "not_found");
    let released = server.delete(&format!("/v1/locks/{id}")).await;
    released.problem(410, "lease_not_held");
    assert_eq!(released.json()["reason"], "unknown");
    // The id is closed now: a late first attempt cannot be granted any more.
    let late = json!({"resource": "a", "ownerId": "ann", "leaseId": id});
    server.post("/v1/locks/acquire", late).await.problem(410, "lease_not_held");
}

#[tokio::test]
async fn every_answer_names_cluster_epoch_and_durability() {
    let server = TestServer::start().await;
    let status = server.get("/v1/status").await.json();
    let expected = format!("{}/{}", status["clusterId"].as_str().unwrap(), status["epoch"]);
    for path in
        ["/v1/status", "/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/v1/locks", "/nowhere"]
    {
        let answer = server.get(path).await;
        assert_eq!(answer.header("leasehold-epoch"), Some(expected.as_str()), "{path}");
        assert_eq!(answer.header("leasehold-durability"), status["durability"].as_str(), "{path}");
    }
}
