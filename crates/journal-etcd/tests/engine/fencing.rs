//! Claims against writers that still believe in themselves (J4).

use leasehold_journal::Outcome;
use leasehold_journal::conformance::outages;
use leasehold_testbed::etcd;

use crate::kit::{Node, journal, journal_of, url};

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = etcd();
    outages::fences_a_stale_writer(&journal(&server)).await;
}

#[tokio::test]
async fn an_old_writer_that_races_claims_never_commits_behind_one() {
    let server = etcd();
    let journal = journal(&server);
    for round in 0..10 {
        let mut old = Node::open(&journal).await;
        let racing = tokio::spawn(async move {
            loop {
                let batch = old.batch("race");
                match old.append(&batch).await {
                    Outcome::Committed => {}
                    outcome => return (outcome, old.tail),
                }
            }
        });
        let new = Node::open(&journal).await;
        let (outcome, last) = racing.await.unwrap();
        assert_eq!((outcome, last), (Outcome::Fenced, new.tail), "round {round}");
    }
}

#[tokio::test]
async fn duelling_claims_have_one_winner() {
    let server = etcd();
    outages::duels_have_one_winner(&journal(&server)).await;
}

#[tokio::test]
async fn clusters_of_other_names_do_not_meet() {
    let server = etcd();
    // A name that begins like ours.
    let other = journal_of(&url(&server), "main-2");
    outages::keeps_names_apart(&journal(&server), &other).await;
}
