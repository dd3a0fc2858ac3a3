//! Claims against writers that still believe in themselves (J4).

use leasehold_journal::Outcome;
use leasehold_journal::conformance::outages;

use crate::kit::{Node, engine, journal, journal_of, raw};

#[tokio::test]
async fn an_append_that_meets_a_claim_in_the_middle_is_fenced() {
    let server = engine();
    let mut node = Node::open(&journal(server.url())).await;
    node.commit("before").await;
    // A claim that has done its update and not yet its commit: it holds the row lock.
    let rival = raw(server.url()).await;
    rival.batch_execute("BEGIN; UPDATE leasehold.head SET epoch = epoch + 1").await.unwrap();
    let batch = node.batch("meets the claim");
    let commit = async {
        let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while rival.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        rival.batch_execute("COMMIT").await.unwrap();
    };
    let (outcome, ()) = tokio::join!(node.append(&batch), commit);
    assert_eq!(outcome, Outcome::Fenced);
    assert_eq!(node.slots().await.len(), 1);
}

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = engine();
    outages::fences_a_stale_writer(&journal(server.url())).await;
}

#[tokio::test]
async fn duelling_claims_have_one_winner() {
    let server = engine();
    outages::duels_have_one_winner(&journal(server.url())).await;
}

#[tokio::test]
async fn a_claim_ends_a_connection_that_is_stuck_with_the_row_lock() {
    let server = engine();
    let journal = journal(server.url());
    let old = Node::open(&journal).await;
    // What a node leaves that was stopped between the two halves of a message: a lock and nobody who gives it back.
    let stuck = raw(&format!("{}?application_name=leasehold/main", server.url())).await;
    stuck.batch_execute("BEGIN; UPDATE leasehold.head SET beat = beat + 1").await.unwrap();
    let mut new = Node::open(&journal).await;
    assert!(new.opened.epoch > old.opened.epoch);
    assert!(stuck.batch_execute("COMMIT").await.is_err(), "the stuck connection lives");
    new.commit("goes on").await;
}

#[tokio::test]
async fn clusters_of_other_names_do_not_meet() {
    let server = engine();
    let other = journal_of(server.url(), "other");
    outages::keeps_names_apart(&journal(server.url()), &other).await;
}
