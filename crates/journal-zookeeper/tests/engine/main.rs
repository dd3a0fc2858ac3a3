//! What only a real ZooKeeper shows: crashes, pauses, lost answers, damage, users.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod kit;
mod passwords;
mod tls;

use leasehold_journal::conformance::outages;
use leasehold_journal::{Claim, Journal, OpenError, Outcome, ReadError};
use leasehold_testbed::{Fault, Proxy, Server, zookeeper};
use leasehold_types::Slot;

use kit::{Node, claim, hasty, journal};

fn url(server: &Server) -> String {
    format!("zookeeper://{}", server.url())
}

#[tokio::test]
async fn an_engine_that_crashed_and_came_back_has_the_batch_once() {
    let server = zookeeper();
    outages::survives_a_crash(&hasty(&url(&server)), || server.kill(0), || server.restart(0)).await;
}

#[tokio::test]
async fn a_paused_engine_is_unknown_in_time_and_the_append_lands_once() {
    let server = zookeeper();
    outages::survives_a_pause(&hasty(&url(&server)), || server.pause(0), || server.resume(0)).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_to_be_ours() {
    let server = zookeeper();
    let proxy = Proxy::before(server.addresses()[0]);
    let journal = hasty(&format!("zookeeper://{}", proxy.address()));
    outages::survives_lost_answers(&journal, || proxy.inject(Fault::LoseAnswer)).await;
}

#[tokio::test]
async fn a_stale_writer_is_fenced_in_everything_it_does() {
    let server = zookeeper();
    outages::fences_a_stale_writer(&journal(&url(&server))).await;
}

#[tokio::test]
async fn slots_go_over_buckets_and_old_buckets_go() {
    let server = zookeeper();
    let mut node = Node::open(&journal(&url(&server))).await;
    for _ in 0..2_050 {
        node.commit("one of many").await;
    }
    node.opened.snapshots.begin(node.tail).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(2_040)).await, Outcome::Committed);
    node.commit("after").await;
    let raw = zookeeper_client::Client::connect(server.url()).await.unwrap();
    let buckets = raw.list_children("/leasehold/main/slots").await.unwrap();
    assert_eq!(buckets, ["0000000000000002"]);
    let mut reader = journal(&url(&server)).reader().await.unwrap();
    let kept = reader.slots(Slot(2_040)).await.unwrap();
    assert!(matches!(kept, leasehold_journal::Slots::Found(found) if found.len() == 12));
}

#[tokio::test]
async fn a_damaged_slot_is_named_and_cut_only_by_recover() {
    let server = zookeeper();
    let journal = journal(&url(&server));
    let mut node = Node::open(&journal).await;
    for body in ["one", "two", "three"] {
        node.commit(body).await;
    }
    let raw = zookeeper_client::Client::connect(server.url()).await.unwrap();
    let slot = "/leasehold/main/slots/0000000000000000/0000000000000002";
    raw.set_data(slot, &[7; 200], None).await.unwrap();
    let read = node.opened.reader.slots(Slot(2)).await;
    assert!(matches!(&read, Err(ReadError::Corrupt { place, .. }) if place == "slot 2"), "{read:?}");
    let recovered = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
    assert_eq!(recovered.tail.slot, Slot(1));
    let early = journal.open(claim()).await;
    assert!(matches!(early, Err(OpenError::Regressed(_))), "{early:?}");
    let again = journal.open(Claim { accept_loss: true, ..claim() }).await.unwrap();
    let mut node = Node { tail: again.tail, opened: again };
    assert_eq!(node.slots().await.len(), 1);
    node.commit("recovered").await;
    Node::open(&journal).await.commit("goes on").await;
}

#[tokio::test]
async fn what_a_user_made_is_closed_to_others() {
    let server = zookeeper();
    let hosts = server.url();
    let mut node = Node::open(&journal(&format!("zookeeper://ours:secret@{hosts}"))).await;
    node.commit("ours").await;
    let other = journal(&format!("zookeeper://theirs:guess@{hosts}")).open(claim()).await;
    assert!(matches!(other, Err(OpenError::Refused(_))), "{other:?}");
}
