//! gRPC through a standby: unary calls and session streams reach the active node, and so do their traces.

use std::time::Duration;

use leasehold_node::Role;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_server::{RawConfig, RawTraces};
use leasehold_testbed::{CollectedSpan, Collector};
use leasehold_types::ids;
use tonic::Code;

use crate::stream::{Stream, acquire, release};
use crate::support::Fixture;

async fn until(what: &str, so: impl Fn() -> bool) {
    let reached = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}

const TRACE: &str = "6bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "10f067aa0ba902b7";

fn traceparent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

/// A request in a stream, as part of a trace.
fn traced(mut request: pb::Request) -> pb::Request {
    if let Some(Ask::Acquire(acquire)) = &mut request.ask {
        acquire.traceparent = traceparent();
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_streams_go_through_a_standby_and_over_a_hand_over() {
    let engine = leasehold_testbed::etcd();
    let url = engine.url().replace("http://", "etcd://");
    let collector = Collector::start();
    let traces = RawTraces { endpoint: Some(collector.url()), ratio: Some(0.0) };
    let raw = RawConfig { traces, ..RawConfig::default() };
    let active = Fixture::on(&url, raw.clone()).await;
    let standby = Fixture::on(&url, raw).await;
    let knows = || standby.server.handle().active().borrow().is_some();
    until("the standby knows the active node", knows).await;
    // The server takes note of it a moment after its node.
    let mut client = standby.client().await;
    let request = |resource: &str| {
        let mut request = tonic::Request::new(pb::AcquireRequest {
            resource: resource.into(),
            owner_id: "ann".into(),
            ttl_ms: Some(60_000),
            ..Default::default()
        });
        request.metadata_mut().insert("traceparent", traceparent().parse().unwrap());
        request
    };
    let mut granted = client.acquire(request("unary")).await;
    while granted.as_ref().is_err_and(|status| status.code() == Code::Unavailable) {
        client = standby.client().await;
        granted = client.acquire(request("unary")).await;
    }
    let granted = granted.unwrap();
    assert_eq!(granted.metadata().get_all("leasehold-durability").iter().count(), 1, "{granted:?}");
    let granted = granted.into_inner();
    assert!(granted.acquired && granted.epoch.ends_with("/1"), "{granted:?}");

    let (mut stream, opened) = Stream::open(&standby, "0123456789abcdef").await;
    let lease = ids::random();
    stream.send(vec![traced(acquire(1, "streamed", lease, 0))]);
    assert!(matches!(&stream.outcomes(1).await[..], [Outcome::Granted(_)]));
    assert_eq!(active.server.handle().status().counts.sessions, 1, "it is decided there");

    let part = |of: &str, name: &str| tokio::task::block_in_place(|| collector.part(TRACE, of, name));
    let streamed = part(CALLER, "Session acquire");
    part(&streamed.span_id, "journal commit");
    // The standby may have been asked several times.
    let answered = tokio::task::block_in_place(|| {
        collector.until("the call at both nodes", |spans| {
            let calls = spans.iter().filter(|span| span.name == "/leasehold.v1.Locks/Acquire");
            let (at_standby, at_active): (Vec<_>, Vec<_>) = calls.partition(|span| span.parent_id == CALLER);
            let is_passed_on =
                |call: &&CollectedSpan| at_standby.iter().any(|span| span.span_id == call.parent_id);
            at_active.into_iter().find(is_passed_on).cloned()
        })
    });
    part(&answered.span_id, "journal commit");

    let Fixture { server, .. } = active;
    server.shutdown().await.unwrap();
    let broken = loop {
        match stream.next_or_end().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert!(
        broken.as_ref().map_or_else(|status| status.code() == Code::Unavailable, Option::is_none),
        "{broken:?}"
    );
    until("the standby serves", || standby.server.handle().status().role == Role::Active).await;
    let mut again = Stream::try_open(&standby, "0123456789abcdef").await;
    while again.is_err() {
        again = Stream::try_open(&standby, "0123456789abcdef").await;
    }
    let (mut stream, resumed) = again.unwrap();
    assert_eq!(resumed.session_id, opened.session_id, "the session lives on");
    stream.send(vec![release(1, lease)]);
    assert!(matches!(&stream.outcomes(1).await[..], [Outcome::Released(_)]));
}
