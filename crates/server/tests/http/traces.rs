//! A request brings its trace along, and what is done for it is told to a collector.

use leasehold_server::{RawConfig, RawTraces};
use leasehold_testbed::{CollectedSpan, Collector};
use serde_json::json;

use crate::support::{Answer, TestServer};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A server that begins no trace by itself.
async fn start(collector: &Collector, ratio: f64) -> TestServer {
    let traces = RawTraces { endpoint: Some(collector.url()), ratio: Some(ratio) };
    TestServer::with(RawConfig { traces, ..RawConfig::default() }).await
}

async fn acquire(server: &TestServer, resource: &str, traceparent: &str) -> Answer {
    let headers = [("content-type", "application/json"), ("traceparent", traceparent)];
    let body = json!({"resource": resource, "ownerId": "w"}).to_string();
    server.connect().await.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await
}

/// Waits for it without holding up the server, which is in this process.
fn span(collector: &Collector, trace: &str, name: &str) -> CollectedSpan {
    tokio::task::block_in_place(|| collector.span(trace, name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_traced_through_the_node_to_the_commit() {
    let collector = Collector::start();
    let server = start(&collector, 0.0).await;
    assert_eq!(acquire(&server, "secret-name", &format!("00-{TRACE}-{PARENT}-01")).await.status, 200);
    let request = span(&collector, TRACE, "POST /v1/locks/acquire");
    assert_eq!((request.parent_id.as_str(), request.kind, request.status), (PARENT, 2, 0));
    assert_eq!(
        (request.service.as_str(), request.attributes["http.response.status_code"].as_str()),
        ("leasehold", "200")
    );
    let decide = span(&collector, TRACE, "node decide");
    let commit = span(&collector, TRACE, "journal commit");
    for part in [&decide, &commit] {
        assert_eq!((&part.parent_id, part.kind), (&request.span_id, 1));
        assert!(part.start_ns <= part.end_ns, "{part:?}");
    }
    assert!(decide.start_ns <= commit.end_ns, "{decide:?} {commit:?}");
    assert!(commit.attributes["leasehold.slot"].parse::<u64>().unwrap() > 0);
    let names_in_traces = collector.spans().iter().any(|span| format!("{span:?}").contains("secret-name"));
    assert!(!names_in_traces, "what is in a path or a body stays out of the names of spans");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_recorded_is_sent() {
    let collector = Collector::start();
    let server = start(&collector, 0.0).await;
    assert_eq!(acquire(&server, "a", &format!("00-{TRACE}-{PARENT}-00")).await.status, 200, "not recorded");
    assert_eq!(acquire(&server, "b", "nonsense").await.status, 200, "no trace of its own");
    let other = "1af7651916cd43dd8448eb211c80319c";
    assert_eq!(acquire(&server, "a", &format!("00-{other}-{PARENT}-01")).await.json()["acquired"], false);
    span(&collector, other, "POST /v1/locks/acquire");
    // In order, so that nothing can still be under way.
    server.server.shutdown().await.unwrap();
    assert!(collector.spans().iter().all(|span| span.trace_id == other), "{:?}", collector.spans());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_traces_requests_that_bring_none() {
    let collector = Collector::start();
    let server = start(&collector, 1.0).await;
    server.acquire("a", "w").await;
    let request = tokio::task::block_in_place(|| {
        collector
            .until("a root", |spans| spans.iter().find(|span| span.name == "POST /v1/locks/acquire").cloned())
    });
    assert_eq!(request.parent_id, "");
    assert_eq!(span(&collector, &request.trace_id, "journal commit").parent_id, request.span_id);
}

#[tokio::test]
async fn a_collector_that_is_gone_holds_nothing_up() {
    let traces = RawTraces { endpoint: Some("http://127.0.0.1:1".into()), ratio: Some(1.0) };
    let server = TestServer::with(RawConfig { traces, ..RawConfig::default() }).await;
    for number in 0..20 {
        server.acquire(&format!("a/{number}"), "w").await;
    }
    server.server.shutdown().await.unwrap();
}
