//! Tenants see nothing of each other (S20): names, listings, events, errors, metrics, audit.

use serde_json::json;

use super::Protected;

#[tokio::test]
async fn the_same_names_are_two_resources_and_nothing_of_one_shows_in_the_other() {
    let protected = Protected::start().await;
    let acme = protected.credential("web", "acme", "operator").await;
    let other = protected.credential("web", "other", "operator").await;
    let (acme, other) = (protected.as_caller(&acme), protected.as_caller(&other));
    acme.acquire("secret-name/1").await;
    acme.post("/v1/sessions", json!({"ownerId": "secret-owner"})).await;
    let free = json!({"actorId": "secret-actor", "reason": "secret-reason", "all": true});
    acme.post("/v1/resources/secret-name%2F2/force-release", free).await;
    // Held in one tenant, free in the other.
    other.acquire("secret-name/1").await;
    let mine = other.get("/v1/locks?prefix=secret-name/1").await.json();
    assert_eq!(mine["locks"].as_array().unwrap().len(), 1);
    let theirs = ["/v1/locks", "/v1/sessions", "/v1/audit", "/v1/resources/secret-name%2F2", "/metrics"];
    for path in theirs {
        let answer = other.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let text = answer.text();
        for word in ["secret-owner", "secret-actor", "secret-reason", "acme"] {
            assert!(!text.contains(word), "{path} shows {word}: {text}");
        }
    }
    let whole = protected.as_caller(&protected.admin).get("/v1/audit").await.json();
    let seqs: Vec<_> =
        whole["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64()).collect();
    let all: Vec<_> = (1..=seqs.len() as u64).map(Some).collect();
    assert_eq!(seqs, all, "an admin is shown the whole chain, without a gap");
    assert!(whole.to_string().contains("secret-actor"));
    let explained = other.get("/v1/resources/secret-name%2F1").await.json();
    assert_eq!(explained["holders"].as_array().unwrap().len(), 1, "its own holder alone");
}

#[tokio::test]
async fn sizes_are_those_of_the_tenant_and_of_all_for_an_admin() {
    let protected = Protected::start().await;
    let acme = protected.credential("web", "acme", "observer").await;
    let worker = protected.credential("web", "acme", "client").await;
    let other = protected.credential("web", "other", "client").await;
    for name in ["1", "2", "3"] {
        protected.as_caller(&other).acquire(name).await;
    }
    protected.as_caller(&worker).acquire("1").await;
    let seen = async |secret: &str| {
        let status = protected.as_caller(secret).get("/v1/status").await.json();
        status["locksHeld"].as_u64().unwrap()
    };
    assert_eq!(seen(&acme).await, 1);
    assert_eq!(seen(&other).await, 3);
    assert_eq!(seen(&protected.admin).await, 4);
    let page = protected.as_caller(&acme).get("/metrics").await.text().to_owned();
    assert!(page.contains("locks_held 1") && page.contains("tenant=\"acme\""), "{page}");
    assert!(!page.contains("tenant=\"other\""));
    let whole = protected.as_caller(&protected.admin).get("/metrics").await.text().to_owned();
    assert!(whole.contains("tenant=\"other\"") && whole.contains("tenant=\"acme\""));
}

#[tokio::test]
async fn what_goes_wrong_is_counted_for_its_tenant_and_for_an_admin() {
    let protected = Protected::start().await;
    let acme = protected.credential("web", "acme", "client").await;
    let looks = protected.credential("eyes", "acme", "observer").await;
    let other = protected.credential("eyes", "other", "observer").await;
    let worker = protected.as_caller(&acme);
    worker.acquire("old").await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    assert_eq!(worker.post(&format!("/v1/locks/{unknown}/renew"), json!({})).await.status, 410);
    let page = async |secret: &str| protected.as_caller(secret).get("/metrics").await.text().to_owned();
    let failed = "lock_renewal_failures_total{result=\"lease_not_held\"} 1";
    assert!(page(&looks).await.contains(failed) && page(&protected.admin).await.contains(failed));
    assert!(!page(&other).await.contains("lock_renewal_failures_total{"), "that is another tenant's");
    // The oldest lease is looked for in every tenant, but only for those who see them all.
    let ages = async |secret: &str| !page(secret).await.contains("\nlock_held_longest_seconds 0\n");
    while !ages(&protected.admin).await {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(ages(&looks).await && !ages(&other).await);
}

#[tokio::test]
async fn a_tenant_is_told_of_its_own_events_alone() {
    let protected = Protected::start().await;
    let acme = protected.credential("web", "acme", "client").await;
    let other = protected.credential("web", "other", "client").await;
    let bearer = format!("Bearer {acme}");
    let mut stream = protected.server.connect().await;
    stream.write("GET", "/v1/events", &[("authorization", &bearer)], b"").await;
    stream.read_until(b": watching\n\n").await;
    protected.as_caller(&other).acquire("theirs").await;
    protected.as_caller(&acme).acquire("ours").await;
    let told = stream.read_until(b"ours").await;
    assert!(!String::from_utf8(told).unwrap().contains("theirs"));
}
