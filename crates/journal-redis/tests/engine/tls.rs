//! TLS to the engine: only to the one whose certificate is trusted, and as whom it asks for.

use leasehold_journal::conformance::OverTls;
use leasehold_journal_redis::RedisJournal;
use leasehold_testbed::{Certificate, Server, Setup, redis_with};

use crate::kit::{hasty, journal};

fn over_tls(server: &Server) -> OverTls<RedisJournal, impl Fn(&str, &str) -> String> {
    let port = server.addresses()[0].port();
    let url = move |host: &str, query: &str| format!("rediss://{host}:{port}/?{query}");
    OverTls { url, patient: journal, hasty }
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let (ours, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let server = redis_with(&Setup::default().with_tls(&ours));
    let plain = format!("redis://{}", server.addresses()[0]);
    over_tls(&server).only_a_trusted_engine_is_used(&ours.file(), &other.file(), &plain).await;
}

#[tokio::test]
async fn an_engine_that_asks_who_we_are_is_told() {
    let [ours, node, stranger] = ["localhost", "node", "stranger"].map(Certificate::of);
    let asks = Setup::default().set("tls-auth-clients", "yes").set("tls-ca-cert-file", &node.file());
    let server = redis_with(&asks.with_tls(&ours));
    let [known, unknown] = [&node, &stranger].map(|who| [who.file(), who.key()]);
    over_tls(&server).an_engine_that_asks_who_we_are_is_told(&ours.file(), &known, &unknown).await;
}
