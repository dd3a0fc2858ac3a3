//! No web page reaches an open server.

use crate::support::TestServer;

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_before_anything_else() {
    let server = TestServer::start().await;
    for headers in [
        &[("host", "evil.test")][..],
        &[("host", "localhost.evil.test:7420")],
        &[("origin", "http://evil.test")],
        &[("origin", "null")],
    ] {
        for path in ["/v1/status", "/healthz", "/", "/nowhere"] {
            let mut client = server.connect().await;
            client.send("GET", path, headers, b"").await.problem(403, "forbidden");
        }
        let mut client = server.connect().await;
        let posted = [headers, &[("content-type", "application/json")]].concat();
        let body = br#"{"resource":"a","ownerId":"o"}"#;
        client.send("POST", "/v1/locks/acquire", &posted, body).await.problem(403, "forbidden");
    }
    assert_eq!(server.server.handle().status().tail.0, 0, "nothing was journaled");
}

#[tokio::test]
async fn own_names_and_listed_ones_get_through() {
    let allowed_hosts = Some(vec!["locks.test".to_owned()]);
    let server = TestServer::with(leasehold_server::RawConfig { allowed_hosts, ..Default::default() }).await;
    let own = format!("http://{}", server.server.address());
    for headers in [
        &[("host", "localhost:1")][..],
        &[("host", "[::1]")],
        &[("host", "LOCKS.test")],
        &[("origin", own.as_str())],
    ] {
        let mut client = server.connect().await;
        assert_eq!(client.send("GET", "/v1/status", headers, b"").await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn a_request_without_host_is_not_understood() {
    use tokio::io::AsyncWriteExt;
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    client.stream.write_all(b"GET /v1/status HTTP/1.1\r\n\r\n").await.unwrap();
    client.answer().await.problem(400, "bad_request");
}
