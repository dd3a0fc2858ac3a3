//! A web page in a browser on the same machine reaches nothing of an open server: not under a foreign origin, and not
//! under a name that was rebound to this address.

use leasehold_api::OPENAPI;
use serde_json::Value;

use crate::support::TestServer;

#[tokio::test]
async fn a_hostile_page_reaches_no_operation_of_an_open_server() {
    let server = TestServer::start().await;
    let own = server.server.address().to_string();
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for method in item.as_object().unwrap().keys() {
            let hostile: [&[(&str, &str)]; 3] = [
                // A page of another origin, which asks for this address.
                &[("host", &own), ("origin", "http://evil.example")],
                // A page whose own name now leads here.
                &[("host", "evil.example"), ("origin", "http://evil.example")],
                &[("host", "evil.example")],
            ];
            for headers in hostile {
                // What a form or a simple fetch can send without asking first.
                let headers = [headers, &[("content-type", "text/plain")]].concat();
                let mut client = server.connect().await;
                let answer = client.send(&method.to_uppercase(), &path, &headers, b"{}").await;
                answer.problem(403, "forbidden");
            }
        }
    }
    assert_eq!(server.server.handle().status().counts.leases, 0);
}

#[tokio::test]
async fn a_body_that_a_page_can_send_unasked_is_refused() {
    let server = TestServer::start().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let body = br#"{"resource":"a","ownerId":"evil"}"#;
        let mut client = server.connect().await;
        let answer = client.send("POST", "/v1/locks/acquire", &[("content-type", kind)], body).await;
        answer.problem(415, "unsupported_media_type");
    }
}
