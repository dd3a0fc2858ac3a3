//! A call over gRPC brings its trace along.

use leasehold_proto::v1 as pb;
use leasehold_server::{RawConfig, RawTraces};
use leasehold_testbed::Collector;

use crate::support::Fixture;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_traced_through_the_node_to_the_commit() {
    let collector = Collector::start();
    let traces = RawTraces { endpoint: Some(collector.url()), ratio: Some(0.0) };
    let server = Fixture::with(RawConfig { traces, ..RawConfig::default() }).await;
    let acquire = pb::AcquireRequest { resource: "a".into(), owner_id: "w".into(), ..Default::default() };
    let mut request = tonic::Request::new(acquire);
    request.metadata_mut().insert("traceparent", format!("00-{TRACE}-{PARENT}-01").parse().unwrap());
    assert!(server.client().await.acquire(request).await.unwrap().into_inner().acquired);
    let span = |name: &str| tokio::task::block_in_place(|| collector.span(TRACE, name));
    let call = span("/leasehold.v1.Locks/Acquire");
    assert_eq!((call.parent_id.as_str(), call.kind), (PARENT, 2));
    assert_eq!(span("node decide").parent_id, call.span_id);
    assert_eq!(span("journal commit").parent_id, call.span_id);
}
