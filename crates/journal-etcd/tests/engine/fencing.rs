//! Claims against writers that still believe in themselves (J4).

use leasehold_journal::{Confirmation, Journal, Outcome};
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::etcd;
use leasehold_types::Slot;

use crate::kit::{Node, claim, journal, read_all, url};

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = etcd();
    let journal = journal(&server);
    let mut old = Node::open(&journal).await;
    old.commit("old").await;
    old.opened.snapshots.begin(old.tail).await.unwrap();
    let mut new = Node::open(&journal).await;
    new.commit("new").await;
    let batch = old.batch("zombie");
    assert_eq!(old.append(&batch).await, Outcome::Fenced);
    assert_eq!(old.opened.writer.beat().await, Outcome::Fenced);
    assert_eq!(old.opened.writer.confirm().await, Confirmation::Fenced);
    assert!(old.opened.snapshots.chunk("stale".into()).await.is_err());
    assert_eq!(old.opened.snapshots.install(Slot(2)).await, Outcome::Fenced);
    assert_eq!(read_all(new.opened.reader.as_mut()).await.len(), 2);
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
    let journal = journal(&server);
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
async fn clusters_of_other_names_do_not_meet() {
    let server = etcd();
    let mut ours = Node::open(&journal(&server)).await;
    // A name that begins like ours.
    let other = EtcdJournal::new(EtcdConfig::from_url(&url(&server), "main-2", |_| None).unwrap()).unwrap();
    let mut theirs = Node::open(&other).await;
    ours.commit("ours").await;
    assert_eq!(theirs.opened.writer.confirm().await, Confirmation::Current);
    assert_eq!(read_all(theirs.opened.reader.as_mut()).await, Vec::new());
}
