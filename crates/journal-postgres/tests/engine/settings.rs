//! What the engine's settings and roles make of the journal (J6, least privilege).

use leasehold_journal::{Journal, OpenError};
use leasehold_testbed::{Setup, postgres, postgres_with};
use leasehold_types::Durability;

use crate::kit::{Node, claim, engine, journal, raw};

#[tokio::test]
async fn the_class_follows_the_settings() {
    let quick = || Setup::default();
    let cases = [
        (quick(), Durability::Durable),
        // Raised for our own connections.
        (quick().set("synchronous_commit", "off"), Durability::Durable),
        (quick().without_fsync(), Durability::Lossy),
        (quick().set("full_page_writes", "off"), Durability::Lossy),
    ];
    for (setup, wanted) in cases {
        let server = postgres_with(&setup);
        let node = Node::open(&journal(server.url())).await;
        assert_eq!(node.opened.durability, wanted, "{setup:?}");
    }
}

#[tokio::test]
async fn a_standby_that_is_not_synchronous_makes_it_lossy() {
    let server = postgres();
    let operator = raw(server.url()).await;
    operator.batch_execute("SELECT pg_create_physical_replication_slot('standby')").await.unwrap();
    assert_eq!(Node::open(&journal(server.url())).await.opened.durability, Durability::Lossy);
}

#[tokio::test]
async fn a_role_that_may_only_use_the_tables_is_enough() {
    let server = engine();
    let operator = raw(server.url()).await;
    operator.batch_execute("CREATE ROLE node LOGIN").await.unwrap();
    let as_node = server.url().replace("postgres@", "node@");
    let refused = journal(&as_node).open(claim()).await;
    assert!(matches!(refused, Err(OpenError::Refused(_))), "{refused:?}");

    Node::open(&journal(server.url())).await;
    let rights = "GRANT USAGE ON SCHEMA leasehold TO node;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA leasehold TO node;";
    operator.batch_execute(rights).await.unwrap();
    let mut node = Node::open(&journal(&as_node)).await;
    node.commit("allowed").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    let installed = node.opened.snapshots.install(node.tail.slot).await;
    assert_eq!(installed, leasehold_journal::Outcome::Committed);
}
