//! TLS to the engine: only to the one whose certificate is trusted.

use leasehold_journal::{Journal, OpenError};
use leasehold_testbed::{Certificate, Server, Setup, postgres_with};

use crate::kit::{Node, claim, hasty, journal};

fn url(server: &Server, host: &str, trusted: &Certificate) -> String {
    let url = server.url().replace("127.0.0.1", host);
    format!("{url}?sslmode=verify-full&sslrootcert={}", trusted.file())
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let (ours, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let server = postgres_with(&Setup::default().without_fsync().with_tls(&ours));
    let mut node = Node::open(&journal(&url(&server, "localhost", &ours))).await;
    node.commit("encrypted").await;
    let refused = [
        ("an unknown authority", url(&server, "localhost", &other)),
        ("another name", url(&server, "127.0.0.1", &ours)),
    ];
    for (what, url) in refused {
        let opened = hasty(&url).open(claim()).await;
        assert!(matches!(opened, Err(OpenError::Refused(_))), "{what}: {opened:?}");
    }
}
