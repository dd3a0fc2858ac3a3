//! Quotas, rates and policies.

use leasehold_server::RawConfig;
use serde_json::json;

use super::Protected;
use crate::support::TestServer;

fn settings(text: &str) -> RawConfig {
    RawConfig::from_toml(text).unwrap()
}

#[tokio::test]
async fn a_tenant_has_no_more_than_its_quota() {
    let raw = settings("[tenants.acme]\nlocks = 2\nsessions = 1\nwatchers = 1\n");
    let protected = Protected::with(raw).await;
    let acme = protected.credential("web", "acme", "client").await;
    let other = protected.credential("web", "other", "client").await;
    let acme = protected.as_caller(&acme);
    acme.acquire("1").await;
    let second = acme.acquire("2").await;
    let third = json!({"resource": "3", "ownerId": "w"});
    acme.post("/v1/locks/acquire", third.clone()).await.problem(429, "quota_exceeded");
    for name in ["1", "2", "3"] {
        protected.as_caller(&other).acquire(name).await;
    }
    let released = acme.delete(&format!("/v1/locks/{}", second["leaseId"].as_str().unwrap())).await;
    assert_eq!(released.status, 200);
    assert_eq!(acme.post("/v1/locks/acquire", third).await.status, 200);
    let session = json!({"ownerId": "w"});
    assert_eq!(acme.post("/v1/sessions", session.clone()).await.status, 200);
    acme.post("/v1/sessions", session).await.problem(429, "quota_exceeded");
}

#[tokio::test]
async fn a_tenant_has_no_more_event_streams_than_its_quota() {
    let protected = Protected::with(settings("[tenants.\"*\"]\nwatchers = 1\n")).await;
    let acme = protected.credential("web", "acme", "client").await;
    let other = protected.credential("web", "other", "client").await;
    let mut streams = Vec::new();
    for secret in [&acme, &other] {
        let bearer = format!("Bearer {secret}");
        let mut stream = protected.server.connect().await;
        stream.write("GET", "/v1/events", &[("authorization", &bearer)], b"").await;
        stream.read_until(b": watching\n\n").await;
        streams.push(stream);
    }
    protected.as_caller(&acme).get("/v1/events").await.problem(429, "quota_exceeded");
}

#[tokio::test]
async fn a_rate_holds_up_acquires_and_never_renewals() {
    let protected = Protected::with(settings("[tenants.acme]\nrate = 5\n")).await;
    let acme = protected.credential("web", "acme", "client").await;
    let acme = protected.as_caller(&acme);
    let lease = acme.acquire("held").await["leaseId"].as_str().unwrap().to_owned();
    let body = json!({"resource": "held", "ownerId": "w"});
    let mut limited = 0;
    for _ in 0..200 {
        let answer = acme.post("/v1/locks/acquire", body.clone()).await;
        if answer.status == 429 {
            answer.problem(429, "rate_limited");
            limited += 1;
            let renewed = acme.post(&format!("/v1/locks/{lease}/renew"), json!({})).await;
            assert_eq!(renewed.status, 200);
        }
        if limited > 3 {
            return;
        }
    }
    panic!("200 acquires went through at a rate of 5 a second");
}

#[tokio::test]
async fn policies_fill_in_what_is_left_open_and_refuse_what_is_not_declared() {
    let raw = settings(
        "undeclared = \"refuse\"\n[[policies]]\nprefix = \"jobs/\"\nttl = \"40s\"\nclass = \"efficiency\"\n\
         [[policies]]\nprefix = \"books/\"\nfence = \"postgres\"\n",
    );
    let server = TestServer::with(raw).await;
    let job = server.acquire("jobs/1", "w").await;
    assert_eq!((&job["ttlMs"], &job["class"]), (&json!(40_000), &json!("efficiency")));
    let other_class = json!({"resource": "jobs/2", "ownerId": "w", "class": "correctness"});
    server.post("/v1/locks/acquire", other_class).await.problem(412, "class_not_supported");
    assert_eq!(server.acquire("books/1", "w").await["guarantee"], "fenced");
    let undeclared = json!({"resource": "else", "ownerId": "w"});
    server.post("/v1/locks/acquire", undeclared).await.problem(403, "forbidden");
    let warned = TestServer::with(settings("undeclared = \"warn\"")).await;
    assert_eq!(warned.acquire("else", "w").await["warning"], "no policy declares this name");
}
