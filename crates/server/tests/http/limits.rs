//! Large, slow and many.

use std::time::Duration;

use leasehold_server::{RawConfig, RawLimits};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::support::TestServer;

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_large_body_is_refused_by_its_announced_length() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    // Nothing of the body is ever sent, so the answer cannot have waited for it.
    client.write("POST", "/v1/locks/acquire", &[JSON, ("content-length", "10485760")], b"").await;
    let detail = client.answer().await.problem(413, "too_large");
    assert!(detail.contains("65536"), "{detail}");
}

#[tokio::test]
async fn a_client_that_sends_ten_megabytes_still_reads_its_answer() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.send("POST", "/v1/locks/acquire", &[JSON], &vec![b'x'; 10 << 20]).await.problem(413, "too_large");
    client.until_closed().await;
}

#[tokio::test]
async fn a_large_chunked_body_is_refused_while_it_comes() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client
        .write(
            "POST",
            "/v1/locks/acquire",
            &[JSON, ("transfer-encoding", "chunked"), ("content-length", "")],
            b"",
        )
        .await;
    client.until_closed().await;
    let mut client = server.connect().await;
    let head = format!(
        "POST /v1/locks/acquire HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        client.host
    );
    client.stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"4000\r\n".as_slice(), &[b' '; 0x4000], b"\r\n"].concat();
    for _ in 0..5 {
        client.stream.write_all(&chunk).await.unwrap();
    }
    client.answer().await.problem(413, "too_large");
}

#[tokio::test]
async fn a_body_that_ends_early_is_no_error_of_ours() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.write("POST", "/v1/locks/acquire", &[JSON, ("content-length", "100")], b"").await;
    client.stream.write_all(b"{\"resource\":").await.unwrap();
    client.stream.shutdown().await.unwrap();
    client.until_closed().await;
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn what_is_not_http_is_closed() {
    let server = TestServer::start().await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..], b"hello\r\n\r\n", &[b'x'; 100_000]] {
        let mut client = server.connect().await;
        // The server may close before it has everything.
        let _ = client.stream.write_all(bytes).await;
        client.until_closed().await;
    }
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off_and_others_do_not_notice() {
    let server = TestServer::start().await;
    let mut slow = server.connect().await;
    slow.stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: lo").await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(server.get("/healthz").await.status, 200);
    slow.until_closed().await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn connections_are_bounded() {
    let limits = RawLimits { connections: Some(2), ..RawLimits::default() };
    let server = TestServer::with(RawConfig { limits, ..RawConfig::default() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    assert_eq!((first.get("/healthz").await.status, second.get("/healthz").await.status), (200, 200));
    let mut third = server.connect().await;
    let told = third.answer().await;
    told.problem(503, "overloaded");
    let healthy = first.get("/healthz").await;
    for name in ["leasehold-epoch", "leasehold-durability"] {
        assert_eq!(told.header(name), healthy.header(name));
    }
    third.until_closed().await;
    assert_eq!(first.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_order() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for name in ["a", "b", "c"] {
        let body = json!({"resource": name, "ownerId": "ann"}).to_string();
        client.write("POST", "/v1/locks/acquire", &[JSON], body.as_bytes()).await;
    }
    for name in ["a", "b", "c"] {
        assert_eq!(client.answer().await.json()["resource"], name);
    }
}

#[tokio::test]
async fn bounds_are_those_of_the_configuration() {
    let written = |text: &str| Some(text.parse().unwrap());
    let limits = RawLimits {
        ttl_max: written("20s"),
        wait_max: written("1s"),
        body_bytes: Some(100),
        ..RawLimits::default()
    };
    let server = TestServer::with(RawConfig { limits, ..RawConfig::default() }).await;
    let detail = server
        .post("/v1/locks/acquire", json!({"resource": "a", "ownerId": "o", "ttlMs": 20_001}))
        .await
        .problem(400, "bad_request");
    assert!(detail.contains("outside 1s to 20s"), "{detail}");
    server
        .post("/v1/locks/acquire", json!({"resource": "a", "ownerId": "o", "waitMs": 1_001}))
        .await
        .problem(400, "bad_request");
    server
        .post("/v1/locks/acquire", json!({"resource": "x".repeat(100), "ownerId": "o"}))
        .await
        .problem(413, "too_large");
}
