//! Bad input: refused with a detail that helps, nothing changed.

use serde_json::{Value, json};

use crate::support::TestServer;

/// Body of an acquire, what the detail must name.
fn bad_acquires() -> Vec<(Value, &'static str)> {
    let with = |field: &str, value: Value| {
        let mut body = json!({"resource": "a", "ownerId": "ann"});
        body[field] = value;
        body
    };
    let uuid1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846";
    vec![
        (with("resource", json!("")), "resource"),
        (with("resource", json!("x".repeat(513))), "513 bytes"),
        (with("resource", json!("a\nb")), "resource"),
        (with("resource", json!("..")), "resource"),
        (with("resource", json!(7)), "resource"),
        (with("resource", json!(null)), "resource"),
        (with("ownerId", json!("")), "ownerId"),
        (with("ownerId", json!("x".repeat(257))), "ownerId"),
        (with("ttlMs", json!(0)), "ttlMs"),
        (with("ttlMs", json!(-1)), "ttlMs"),
        (with("ttlMs", json!(1.5)), "ttlMs"),
        (with("ttlMs", json!("15s")), "ttlMs"),
        (with("ttlMs", json!(3_600_001)), "ttlMs"),
        (with("ttlMs", json!(u64::MAX)), "ttlMs"),
        (with("ttlMs", json!(1e300)), "ttlMs"),
        (with("ttlSeconds", json!(u64::MAX)), "ttl"),
        (with("ttlSeconds", json!(0)), "ttl"),
        (with("waitMs", json!(600_001)), "waitMs"),
        (with("waitMs", json!(-5)), "waitMs"),
        (with("waitMs", json!(null)), "waitMs"),
        (with("mode", json!("mutex")), "mode"),
        (with("mode", json!("semaphore")), "limit"),
        (with("limit", json!(2)), "limit"),
        (with("class", json!("best")), "class"),
        (with("sessionId", json!("nope")), "sessionId"),
        (with("leaseId", json!("nope")), "leaseId"),
        (with("leaseId", json!(uuid1)), "leaseId"),
        (with("lockDelayMs", json!(3_600_001)), "lockDelayMs"),
        (with("maxHoldMs", json!(0)), "maxHoldMs"),
        (with("labels", json!(["a"])), "labels"),
        (with("labels", json!({"a": 1})), "labels.a"),
        (with("labels", json!({"": "x"})), "label"),
        (with("labels", Value::Object((0..17).map(|n| (n.to_string(), "x".into())).collect())), "labels"),
        (with("colour", json!("red")), "colour"),
        (json!({"ownerId": "ann"}), "resource"),
        (json!({"resource": "a"}), "ownerId"),
        (json!({"resource": "a", "ownerId": "ann", "ttlMs": 5000, "ttlSeconds": 5}), "ttlMs"),
        (json!({"resource": "a", "ownerId": "ann", "mode": "semaphore", "limit": 0}), "limit"),
        (json!([]), "body"),
        (json!("a"), "body"),
    ]
}

#[tokio::test]
async fn acquires_with_mistakes_are_refused_by_field() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for (body, named) in bad_acquires() {
        let detail = client.post("/v1/locks/acquire", body.clone()).await.problem(400, "bad_request");
        assert!(detail.contains(named), "{body}: {detail}");
    }
    assert_eq!(server.server.handle().status().tail.0, 0, "nothing was journaled");
}

#[tokio::test]
async fn bodies_that_are_not_the_json_wanted_are_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let json_type = [("content-type", "application/json")];
    let bodies: [(&[u8], &str); 8] = [
        (b"{\"resource\":\"a\",\"ownerId\":\"ann\"", "EOF"),
        (b"{", "EOF"),
        (b"", "EOF"),
        (b"resource=a", "expected value"),
        (b"{\"resource\":\"a\",\"resource\":\"b\",\"ownerId\":\"o\"}", "duplicate field `resource`"),
        (b"{\"resource\":\"\xff\",\"ownerId\":\"o\"}", "resource"),
        (b"{\"resource\":\"\\ud800\",\"ownerId\":\"o\"}", "resource"),
        (b"{\"resource\":\"a\",\"ownerId\":\"o\"}{}", "after the JSON value"),
    ];
    for (body, named) in bodies {
        let detail =
            client.send("POST", "/v1/locks/acquire", &json_type, body).await.problem(400, "bad_request");
        assert!(detail.contains(named), "{}: {detail}", String::from_utf8_lossy(body));
    }
    let deep = [b"{\"labels\":".as_slice(), &b"[".repeat(30_000), &b"]".repeat(30_000), b"}"].concat();
    client.send("POST", "/v1/locks/acquire", &json_type, &deep).await.problem(400, "bad_request");
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let server = TestServer::start().await;
    let body = br#"{"resource":"a","ownerId":"ann"}"#;
    for headers in [&[][..], &[("content-type", "text/plain")], &[("content-type", "application/jsonp")]] {
        let mut client = server.connect().await;
        client.send("POST", "/v1/locks/acquire", headers, body).await.problem(415, "unsupported_media_type");
    }
    let mut client = server.connect().await;
    let fine = client
        .send("POST", "/v1/locks/acquire", &[("content-type", "Application/JSON; charset=utf-8")], body)
        .await;
    assert_eq!(fine.status, 200);
}

#[tokio::test]
async fn other_methods_are_told_what_the_path_has() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let id = "8c3f5a0e-5d0c-4e0c-9d8a-1f2e3d4c5b6a";
    for (method, path, allow) in [
        ("GET", "/v1/locks/acquire".to_owned(), "POST"),
        ("PUT", format!("/v1/locks/{id}"), "GET, HEAD, DELETE"),
        ("POST", "/v1/locks".to_owned(), "GET, HEAD"),
        ("DELETE", "/v1/sessions".to_owned(), "GET, HEAD, POST"),
        ("OPTIONS", "/v1/events".to_owned(), "GET"),
        ("PATCH", "/healthz".to_owned(), "GET, HEAD"),
        ("BREW", "/".to_owned(), "GET, HEAD"),
    ] {
        let answer = client.send(method, &path, &[], b"").await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn paths_queries_and_headers_with_mistakes_are_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for path in ["/v1", "/v1/lock", "/v1/locks/", "/v2/status", "/v1/resources/a/b/c", "/favicon.ico"] {
        client.get(path).await.problem(404, "not_found");
    }
    for (path, named) in [
        ("/v1/locks/not-a-uuid", "leaseId"),
        ("/v1/sessions/not-a-uuid", "sessionId"),
        ("/v1/resources/%FF", "resource"),
        ("/v1/resources/%2E%2E", "resource"),
        ("/v1/resources/a%00b", "resource"),
        ("/v1/locks?colour=red", "colour"),
        ("/v1/locks?pageSize=0", "pageSize"),
        ("/v1/locks?pageSize=1001", "pageSize"),
        ("/v1/locks?pageSize=ten", "pageSize"),
        ("/v1/locks?pageSize=1&pageSize=2", "pageSize"),
        ("/v1/locks?cursor=zzz", "cursor"),
        ("/v1/locks?ownerId=", "ownerId"),
        ("/v1/locks?prefix=%C3%28", "prefix"),
        ("/v1/status?verbose=1", "verbose"),
        ("/healthz?x", "x"),
        ("/v1/audit?after=-1", "after"),
        ("/v1/events?after=7", "after"),
        ("/v1/sessions?cursor=1", "cursor"),
    ] {
        let detail = client.get(path).await.problem(400, "bad_request");
        assert!(detail.contains(named), "{path}: {detail}");
    }
    let long = format!("/v1/resources/{}", "x".repeat(513));
    client.get(&long).await.problem(400, "bad_request");
    let body = json!({"resource": "a", "ownerId": "ann"});
    for key in ["", "ü", &"k".repeat(129)] {
        client.post_keyed("/v1/locks/acquire", key, body.clone()).await.problem(400, "bad_request");
    }
    let id = "8c3f5a0e-5d0c-4e0c-9d8a-1f2e3d4c5b6a";
    let with_body = client
        .send("DELETE", &format!("/v1/locks/{id}"), &[("content-type", "application/json")], b"{}")
        .await;
    with_body.problem(400, "bad_request");
}

#[tokio::test]
async fn operators_say_who_and_why_and_what() {
    let server = TestServer::start().await;
    let path = "/v1/resources/a/force-release";
    for (body, named) in [
        (json!({"reason": "r", "all": true}), "actorId"),
        (json!({"actorId": "op", "all": true}), "reason"),
        (json!({"actorId": "op", "reason": "", "all": true}), "reason"),
        (json!({"actorId": "op", "reason": "r"}), "fencingToken"),
        (json!({"actorId": "op", "reason": "r", "all": false}), "all"),
        (json!({"actorId": "op", "reason": "r", "all": true, "fencingToken": 1}), "fencingToken"),
        (json!({"actorId": "op", "reason": "r", "fencingToken": 0}), "fencingToken"),
        (json!({"actorId": "op", "reason": "r", "fencingToken": 1u64 << 53}), "fencingToken"),
        (json!({"actorId": "op", "reason": "x".repeat(1025), "all": true}), "reason"),
    ] {
        let detail = server.post(path, body.clone()).await.problem(400, "bad_request");
        assert!(detail.contains(named), "{body}: {detail}");
    }
    let id = "8c3f5a0e-5d0c-4e0c-9d8a-1f2e3d4c5b6a";
    server.delete(&format!("/v1/sessions/{id}?actorId=op")).await.problem(400, "bad_request");
}
