//! One trace from the Rust client through the server to the journal's commit, told by both processes to one collector.

use std::time::Duration;

use leasehold::{Client, TraceContext, TraceSettings, Tracer};
use leasehold_testbed::Collector;
use leasehold_tests::{Server, free_port};

const TRACE: &str = "5af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "c7ad6b7169203331";

#[test]
fn an_acquire_is_traced_from_the_client_to_the_commit() {
    let collector = Collector::start();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("leasehold.toml");
    std::fs::write(&config, format!("[traces]\nendpoint = \"{}\"\nratio = 0.0\n", collector.url())).unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let mut server = Server::spawn_with(free_port(), &dir.path().join("data"), &more);
    server.wait_ready();

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let tracer = Tracer::start(TraceSettings {
            endpoint: collector.url(),
            ratio: 0.0,
            service: "worker".to_owned(),
            instance: "test".to_owned(),
        });
        let tracer = tracer.unwrap();
        let client = Client::builder().endpoint(server.url()).traces(tracer.clone()).build().unwrap();
        let parent = TraceContext::parse(&format!("00-{TRACE}-{PARENT}-01")).unwrap();
        let guard = client.acquire("billing/close").trace(parent).await.unwrap();
        // One that is part of no trace is not recorded, since the ratio is 0.
        client.acquire("other").await.unwrap().release().await.unwrap();
        guard.release().await.unwrap();
        tracer.flush().await;
    });

    let asked = collector.span(TRACE, "leasehold acquire");
    assert_eq!((asked.service.as_str(), asked.parent_id.as_str(), asked.kind), ("worker", PARENT, 3));
    assert_eq!(asked.attributes["leasehold.resource"], "billing/close");
    assert!(asked.attributes["leasehold.fencing_token"].parse::<u64>().unwrap() > 0);
    let answered = collector.span(TRACE, "Session acquire");
    assert_eq!(
        (answered.service.as_str(), &answered.parent_id, answered.kind),
        ("leasehold", &asked.span_id, 2)
    );
    for name in ["node decide", "journal commit"] {
        let part = collector.span(TRACE, name);
        assert_eq!((&part.parent_id, part.kind), (&answered.span_id, 1), "{part:?}");
        let hour = Duration::from_secs(3_600).as_nanos() as u64;
        assert!(part.start_ns.abs_diff(asked.start_ns) < hour, "the clocks were told apart");
    }
    assert!(server.stop().success());
    assert!(collector.spans().iter().all(|span| span.trace_id == TRACE), "{:?}", collector.spans());
}
