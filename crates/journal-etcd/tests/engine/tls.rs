//! TLS to the engine: only to the one whose certificate is trusted, and as whom it asks for.

use leasehold_journal::conformance::OverTls;
use leasehold_journal::{Journal, OpenError};
use leasehold_journal_etcd::EtcdJournal;
use leasehold_testbed::{Certificate, Server, Setup, etcd_cluster_with, redis};

use crate::kit::{claim, hasty, journal_of};

fn over_tls(server: &Server) -> OverTls<EtcdJournal, impl Fn(&str, &str) -> String> {
    let port = server.addresses()[0].port();
    let url = move |host: &str, query: &str| format!("etcd://{host}:{port}?tls=on&{query}");
    OverTls { url, patient: |url| journal_of(url, "main"), hasty }
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let (ours, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let server = etcd_cluster_with(1, &Setup::default().with_tls(&ours));
    let plain = format!("etcd://{}?tls=off", server.addresses()[0]);
    over_tls(&server).only_a_trusted_engine_is_used(&ours.file(), &other.file(), &plain).await;
}

#[tokio::test]
async fn what_is_no_etcd_is_told_as_such() {
    let ours = Certificate::of("localhost");
    let server = etcd_cluster_with(1, &Setup::default().with_tls(&ours));
    let foreign = redis();
    let addresses = [server.addresses()[0], foreign.addresses()[0]];
    for address in addresses {
        let opened = hasty(&format!("etcd://{address}?tls=off")).open(claim()).await;
        let is_told = matches!(&opened, Err(OpenError::Unavailable(why)) if why.contains("may be no etcd"));
        assert!(is_told, "{address}: {opened:?}");
    }
}

#[tokio::test]
async fn an_engine_that_asks_who_we_are_is_told() {
    let [ours, node, stranger] = ["localhost", "node", "stranger"].map(Certificate::of);
    let asks = Setup::default().set("client-cert-auth", "true").set("trusted-ca-file", &node.file());
    let server = etcd_cluster_with(1, &asks.with_tls(&ours));
    let [known, unknown] = [&node, &stranger].map(|who| [who.file(), who.key()]);
    over_tls(&server).an_engine_that_asks_who_we_are_is_told(&ours.file(), &known, &unknown).await;
}
