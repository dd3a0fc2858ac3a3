//! Outcomes that are unknown, and how they are resolved (J2, J3).

use leasehold_journal::conformance::outages;
use leasehold_journal::{Confirmation, Outcome};
use leasehold_testbed::{Fault, Proxy, etcd, etcd_cluster};

use crate::kit::{Node, hasty, journal, url};

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = etcd();
    let journal = hasty(&url(&server));
    outages::survives_a_crash(&journal, || server.kill(0), || server.restart(0)).await;
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = etcd();
    let journal = hasty(&url(&server));
    outages::survives_a_pause(&journal, || server.pause(0), || server.resume(0)).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = etcd();
    let proxy = Proxy::before(server.addresses()[0]);
    let journal = hasty(&format!("etcd://{}", proxy.address()));
    let unknown = outages::survives_lost_answers(&journal, || proxy.inject(Fault::LoseAnswer)).await;
    assert_eq!(unknown, 5);
}

#[tokio::test]
async fn any_one_member_of_three_may_die() {
    let server = etcd_cluster(3);
    let mut node = Node::open(&hasty(&url(&server))).await;
    for member in 0..3 {
        node.commit("all alive").await;
        server.kill(member);
        let batch = node.batch("one is dead");
        assert_eq!(node.resolve(&batch).await, Outcome::Committed);
        // Another node finds everything through the members that are left.
        let other = Node::open(&hasty(&url(&server))).await;
        assert_eq!(other.tail, node.tail);
        let refused = node.batch("replaced");
        assert_eq!(node.resolve(&refused).await, Outcome::Fenced);
        node = other;
        server.restart(member);
    }
    assert_eq!(Node::open(&journal(&server)).await.slots().await.len(), 6);
}

#[tokio::test]
async fn without_a_quorum_nothing_is_confirmed() {
    let server = etcd_cluster(3);
    let mut node = Node::open(&hasty(&url(&server))).await;
    node.commit("before").await;
    server.pause(1);
    server.pause(2);
    let batch = node.batch("no quorum");
    let outcome = node.append(&batch).await;
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
    let confirmation = node.opened.writer.confirm().await;
    assert!(matches!(confirmation, Confirmation::Unknown(_)), "{confirmation:?}");
    server.resume(1);
    server.resume(2);
    assert_eq!(node.resolve(&batch).await, Outcome::Committed);
}
