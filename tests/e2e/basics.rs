//! The everyday path: take, renew, release, take away, stop in order.

use leasehold_tests::{Seed, Server};
use serde_json::json;

#[test]
fn a_lock_is_taken_renewed_and_released_and_tokens_grow() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(1);
    let (first, second) = (seed.uuid(), seed.uuid());

    let granted = http.acquire("billing/close", &first, 15_000).unwrap();
    assert!(granted.is_acquired(), "{}", granted.body);
    assert!(granted.header("leasehold-epoch").is_some(), "every answer names cluster and epoch");
    let refused = http.acquire("billing/close", &second, 15_000).unwrap();
    assert_eq!((refused.status, refused.json()["acquired"].clone()), (200, json!(false)), "{}", refused.body);

    let renewed = http.post(&format!("/v1/locks/{first}/renew"), &json!({})).unwrap();
    assert_eq!(renewed.json()["renewed"], json!(true), "{}", renewed.body);
    let released = http.delete(&format!("/v1/locks/{first}")).unwrap();
    assert_eq!(released.json()["released"], json!(true), "{}", released.body);
    let again = http.delete(&format!("/v1/locks/{first}")).unwrap();
    assert_eq!(again.body, released.body, "a retried release is the same one");

    let late = http.acquire("billing/close", &first, 15_000).unwrap();
    assert_eq!(
        (late.status, late.code().as_str()),
        (410, "lease_not_held"),
        "an ended lease is never revived"
    );
    let next = http.acquire("billing/close", &second, 15_000).unwrap();
    assert!(next.token() > granted.token());
}

#[test]
fn a_stop_in_order_keeps_everything_and_exits_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let lease = Seed::from_env(2).uuid();
    let granted = server.http().acquire("kept", &lease, 60_000).unwrap();
    let status = server.stop();
    assert!(status.success(), "{status}");

    let server = Server::start(&data);
    let found = server.http().get(&format!("/v1/locks/{lease}")).unwrap();
    assert_eq!((found.status, found.token()), (200, granted.token()));
}

#[test]
fn a_forced_holder_is_told_and_the_audit_log_says_who_did_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let lease = Seed::from_env(3).uuid();
    let token = http.acquire("billing/close", &lease, 60_000).unwrap().token();

    let body = json!({ "actorId": "ada", "reason": "stuck since noon", "fencingToken": token });
    let forced = http.post("/v1/resources/billing%2Fclose/force-release", &body).unwrap();
    assert_eq!(forced.json()["released"][0]["fencingToken"], json!(token), "{}", forced.body);
    let renewed = http.post(&format!("/v1/locks/{lease}/renew"), &json!({})).unwrap();
    assert_eq!(
        (renewed.status, renewed.json()["reason"].clone()),
        (410, json!("forced")),
        "{}",
        renewed.body
    );

    let audit = http.get("/v1/audit").unwrap().json();
    assert_eq!(audit["entries"][0]["actorId"], json!("ada"), "{audit}");
    assert_eq!(http.get("/v1/audit/verify").unwrap().json()["intact"], json!(true));
}
