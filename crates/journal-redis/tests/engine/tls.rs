//! TLS to the engine: only to the one whose certificate is trusted, and as whom it asks for.

use leasehold_journal::{Journal as _, OpenError};
use leasehold_testbed::{Certificate, Server, Setup, redis_with};

use crate::kit::{Node, claim, hasty, journal};

fn url(server: &Server, host: &str, query: &str) -> String {
    format!("rediss://{host}:{}/?{query}", server.addresses()[0].port())
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let (ours, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let server = redis_with(&Setup::default().with_tls(&ours));
    let trusting = |certificate: &Certificate| format!("tls_ca={}", certificate.file());
    let mut node = Node::open(&journal(&url(&server, "localhost", &trusting(&ours)))).await;
    node.commit("encrypted").await;
    let refused = [
        ("an unknown authority", url(&server, "localhost", &trusting(&other))),
        ("another name", url(&server, "127.0.0.1", &trusting(&ours))),
        ("no TLS at all", format!("redis://{}", server.addresses()[0])),
    ];
    for (what, url) in refused {
        let opened = hasty(&url).open(claim()).await;
        assert!(matches!(opened, Err(OpenError::Unavailable(_))), "{what}: {opened:?}");
    }
}

#[tokio::test]
async fn an_engine_that_asks_who_we_are_is_told() {
    let (ours, node, stranger) =
        (Certificate::of("localhost"), Certificate::of("node"), Certificate::of("stranger"));
    let asks = Setup::default().set("tls-auth-clients", "yes").set("tls-ca-cert-file", &node.file());
    let server = redis_with(&asks.with_tls(&ours));
    let as_who = |who: &Certificate| {
        let query = format!("tls_ca={}&tls_cert={}&tls_key={}", ours.file(), who.file(), who.key());
        url(&server, "localhost", &query)
    };
    Node::open(&journal(&as_who(&node))).await.commit("known").await;
    let nobody = url(&server, "localhost", &format!("tls_ca={}", ours.file()));
    for (what, url) in [("a stranger", as_who(&stranger)), ("nobody", nobody)] {
        let opened = hasty(&url).open(claim()).await;
        assert!(matches!(opened, Err(OpenError::Unavailable(_))), "{what}: {opened:?}");
    }
}
