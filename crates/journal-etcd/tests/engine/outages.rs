//! Outcomes that are unknown, and how they are resolved (J2, J3).

use leasehold_journal::{Confirmation, Journal, Outcome};
use leasehold_testbed::{Fault, Proxy, etcd, etcd_cluster};

use crate::kit::{Node, claim, journal, journal_at, read_all};

fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(_))
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = etcd();
    let mut node = Node::open(&journal(&server)).await;
    node.commit("before").await;
    server.kill(0);
    let batch = node.batch("in doubt");
    for _ in 0..2 {
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    assert!(matches!(node.opened.writer.confirm().await, Confirmation::Unknown(_)));
    assert!(node.opened.reader.head().await.is_err());
    server.restart(0);
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    assert_eq!(node.append(&batch).await, Outcome::Committed);
    assert_eq!(node.opened.writer.confirm().await, Confirmation::Current);
    node.commit("after").await;
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 3);
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = etcd();
    let mut node = Node::open(&journal(&server)).await;
    server.pause(0);
    let batch = node.batch("paused");
    let outcome = node.append(&batch).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert!(journal(&server).open(claim()).await.is_err());
    server.resume(0);
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 1);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = etcd();
    let proxy = Proxy::before(server.addresses()[0]);
    let mut node = Node::open(&journal_at(&format!("etcd://{}", proxy.address()))).await;
    for round in 1..=5 {
        let batch = node.batch("answer lost");
        proxy.inject(Fault::LoseAnswer);
        let outcome = node.append(&batch).await;
        assert!(is_unknown(&outcome), "round {round}: {outcome:?}");
        assert_eq!(node.resolve(&batch).await, Outcome::Committed, "round {round}");
    }
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 5);
}

#[tokio::test]
async fn any_one_member_of_three_may_die() {
    let server = etcd_cluster(3);
    let mut node = Node::open(&journal(&server)).await;
    for member in 0..3 {
        node.commit("all alive").await;
        server.kill(member);
        let batch = node.batch("one is dead");
        assert_eq!(node.resolve(&batch).await, Outcome::Committed);
        // Another node finds everything through the members that are left.
        let other = journal(&server);
        let opened = loop {
            if let Ok(opened) = other.open(claim()).await {
                break opened;
            }
        };
        assert_eq!(opened.tail, node.tail);
        assert_eq!(node.opened.writer.beat().await, Outcome::Fenced);
        node = Node { tail: opened.tail, opened };
        server.restart(member);
    }
    assert_eq!(read_all(node.opened.reader.as_mut()).await.len(), 6);
}

#[tokio::test]
async fn without_a_quorum_nothing_is_confirmed() {
    let server = etcd_cluster(3);
    let mut node = Node::open(&journal(&server)).await;
    node.commit("before").await;
    server.pause(1);
    server.pause(2);
    let batch = node.batch("no quorum");
    let outcome = node.append(&batch).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    let confirmation = node.opened.writer.confirm().await;
    assert!(matches!(confirmation, Confirmation::Unknown(_)), "{confirmation:?}");
    server.resume(1);
    server.resume(2);
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
}
