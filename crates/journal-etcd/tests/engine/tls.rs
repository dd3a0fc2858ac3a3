//! TLS to the engine: only to the one whose certificate is trusted, and as whom it asks for.

use leasehold_journal::{Journal as _, OpenError};
use leasehold_testbed::{Certificate, Server, Setup, etcd_cluster_with};

use crate::kit::{Node, claim, hasty, journal_of};

fn url(server: &Server, host: &str, query: &str) -> String {
    format!("etcd://{host}:{}?tls=on&{query}", server.addresses()[0].port())
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let (ours, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let server = etcd_cluster_with(1, &Setup::default().with_tls(&ours));
    let trusting = |certificate: &Certificate| format!("tls_ca={}", certificate.file());
    let mut node = Node::open(&journal_of(&url(&server, "localhost", &trusting(&ours)), "main")).await;
    node.commit("encrypted").await;
    let refused = [
        ("an unknown authority", url(&server, "localhost", &trusting(&other))),
        ("another name", url(&server, "127.0.0.1", &trusting(&ours))),
        ("no TLS at all", format!("etcd://{}?tls=off", server.addresses()[0])),
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
    let asks = Setup::default().set("client-cert-auth", "true").set("trusted-ca-file", &node.file());
    let server = etcd_cluster_with(1, &asks.with_tls(&ours));
    let as_who = |who: &Certificate| {
        let query = format!("tls_ca={}&tls_cert={}&tls_key={}", ours.file(), who.file(), who.key());
        url(&server, "localhost", &query)
    };
    Node::open(&journal_of(&as_who(&node), "main")).await.commit("known").await;
    let nobody = url(&server, "localhost", &format!("tls_ca={}", ours.file()));
    for (what, url) in [("a stranger", as_who(&stranger)), ("nobody", nobody)] {
        let opened = hasty(&url).open(claim()).await;
        assert!(matches!(opened, Err(OpenError::Unavailable(_))), "{what}: {opened:?}");
    }
}
