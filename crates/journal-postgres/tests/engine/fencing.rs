//! Claims against writers that still believe in themselves (J4).

use leasehold_journal::{Confirmation, Journal, Outcome};
use leasehold_testbed::{Setup, postgres_with};
use leasehold_types::Slot;

use crate::kit::{Node, claim, journal, raw, read_all};

fn engine() -> leasehold_testbed::Server {
    postgres_with(&Setup::default().without_fsync())
}

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
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 1);
}

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = engine();
    let journal = journal(server.url());
    let mut old = Node::open(&journal).await;
    old.commit("old").await;
    old.opened.snapshots.begin(old.tail).await.unwrap();
    let mut new = Node::open(&journal).await;
    new.commit("new").await;
    let batch = old.batch("zombie");
    assert_eq!(old.append(&batch).await, Outcome::Fenced);
    assert_eq!(old.opened.writer.beat().await, Outcome::Fenced);
    assert_eq!(old.opened.writer.confirm().await, Confirmation::Fenced);
    assert_eq!(old.opened.snapshots.install(Slot(2)).await, Outcome::Fenced);
    assert_eq!(read_all(new.opened.reader.as_mut()).await.len(), 2);
}

#[tokio::test]
async fn duelling_claims_have_one_winner() {
    let server = engine();
    let journal = journal(server.url());
    let seen = Node::open(&journal).await.opened.epoch;
    let claims = (0..8).map(|_| {
        let (journal, mut claim) = (journal.clone(), claim());
        claim.expected_epoch = Some(seen);
        tokio::spawn(async move { journal.open(claim).await.is_ok() })
    });
    let mut winners = 0;
    for duel in claims.collect::<Vec<_>>() {
        winners += usize::from(duel.await.unwrap());
    }
    assert_eq!(winners, 1);
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
    let mut ours = Node::open(&journal(server.url())).await;
    let other =
        leasehold_journal_postgres::PostgresConfig::from_url(server.url(), "other", |_| None).unwrap();
    let other = leasehold_journal_postgres::PostgresJournal::new(other).unwrap();
    let mut theirs = Node::open(&other).await;
    ours.commit("ours").await;
    assert_eq!(theirs.opened.writer.confirm().await, Confirmation::Current);
    assert_eq!(read_all(theirs.opened.reader.as_mut()).await, Vec::new());
    assert_eq!(theirs.opened.reader.head().await.unwrap().tail.slot, Slot(0));
}
