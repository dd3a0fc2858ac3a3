//! A standby holds its journal to what it has seen of it, as a claim does (J9): else a node that knows nothing could serve a
//! journal that went back, and give tokens a second time through nodes that know better.

use leasehold_journal::{Claim, Journal as _, MemoryJournal, OpenError, ReadError, Witness};
use leasehold_node::{StartError, StopReason};
use leasehold_types::{ClusterId, Epoch, FencingToken, Nonce, Slot};

use super::cluster::*;

/// A journal that was restored to its first slots, and is served by a node that knows nothing; `node-1` has seen more.
async fn served_after_a_loss() -> Cluster {
    let mut cluster = Cluster::new(1).await;
    let kept = cluster.journal.tail().slot;
    for lease in 1..=5 {
        cluster.members[0].grant(&format!("r{lease}"), lease).await;
    }
    cluster.pass(1_500).await;
    assert_eq!(cluster.members.remove(0).shut_down().await, StopReason::Shutdown);
    cluster.journal.lose_after(Slot(kept.0 + 1));
    cluster.join().await;
    cluster.pass_until(3_000, |cluster| cluster.active().is_some()).await;
    cluster
}

fn witness_of(cluster: &Cluster, number: usize) -> Witness {
    Witness::load(&cluster.config(number).data_dir.join("witness")).unwrap().expect("it has seen the journal")
}

/// What `node-1` says while it waits, and why it stops.
async fn said_and_stopped(cluster: &Cluster, waiting: Member) -> (String, String) {
    let status = waiting.handle.status();
    assert_eq!(status.active, None, "nothing is passed on");
    let trouble = status.trouble.expect("it is told");
    match cluster.pass_until_stopped(waiting).await {
        StopReason::Halted(why) => (trouble.to_string(), why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_standby_that_has_seen_more_passes_nothing_on_and_halts() {
    let cluster = served_after_a_loss().await;
    let seen = witness_of(&cluster, 1);
    let waiting = cluster.start(cluster.config(1)).await.unwrap();
    let (trouble, why) = said_and_stopped(&cluster, waiting).await;
    assert!(trouble.contains("was already committed"), "{trouble}");
    assert!(why.contains("was already committed") && why.contains("leasehold recover"), "{why}");
    assert_eq!(witness_of(&cluster, 1), seen, "what it knows is not written over");
}

#[tokio::test]
async fn a_journal_that_grew_past_what_was_seen_in_another_way_is_another() {
    let cluster = served_after_a_loss().await;
    let seen = witness_of(&cluster, 1);
    while cluster.journal.tail().slot <= seen.tail.slot {
        let lease = u8::try_from(cluster.journal.tail().slot.0).unwrap();
        cluster.members[0].grant(&format!("again {lease}"), 100 + lease).await;
    }
    let refused = cluster.start(cluster.config(1)).await.err();
    let Some(StartError::Open(OpenError::Regressed(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains("holds another batch"), "{why}");
    assert_eq!(witness_of(&cluster, 1), seen);
}

#[tokio::test]
async fn a_journal_of_another_cluster_is_not_followed() {
    let mut cluster = Cluster::new(1).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(1_500).await;
    cluster.members.remove(0).shut_down().await;
    let seen = witness_of(&cluster, 1);
    cluster.journal = MemoryJournal::new();
    cluster.join().await;
    let refused = cluster.start(cluster.config(1)).await.err();
    let Some(StartError::Open(OpenError::Regressed(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains("belongs to cluster") && why.contains("--cluster"), "{why}");
    assert_eq!(witness_of(&cluster, 1), seen);
}

#[tokio::test]
async fn a_journal_that_is_gone_is_not_founded_again_by_a_node_that_has_seen_it() {
    let mut cluster = Cluster::new(1).await;
    cluster.members[0].grant("r", 1).await;
    cluster.members.remove(0).shut_down().await;
    cluster.journal.lose_everything();
    let refused = cluster.start(cluster.config(1)).await.err();
    let Some(StartError::Open(OpenError::Regressed(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains("there is none of this name") && why.contains("--cluster"), "{why}");
    let head = cluster.journal.reader().await.unwrap().head().await;
    assert_eq!(head, Err(ReadError::NotFounded), "nothing was founded");
}

#[tokio::test]
async fn nodes_whose_journal_was_emptied_under_them_halt() {
    let mut cluster = Cluster::new(2).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(1_500).await;
    cluster.journal.lose_everything();
    for halting in std::mem::take(&mut cluster.members) {
        let reason = cluster.pass_until_stopped(halting).await;
        let StopReason::Halted(why) = reason else { panic!("{reason:?}") };
        assert!(why.contains("there is none of this name"), "{why}");
    }
}

#[tokio::test]
async fn what_only_lagged_is_followed_once_it_comes() {
    let mut cluster = Cluster::new(2).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(1_500).await;
    cluster.members.remove(1).shut_down().await;
    // As if it had seen a take-over that its member of the engine does not show yet.
    let path = cluster.config(2).data_dir.join("witness");
    let mut witness = witness_of(&cluster, 2);
    witness.epoch = Epoch(witness.epoch.0 + 1);
    witness.store(&path).unwrap();
    let lagging = cluster.start(cluster.config(2)).await.unwrap();
    cluster.members.push(lagging);
    cluster.pass(3_000).await;
    let status = cluster.members[1].handle.status();
    assert!(status.active.is_none() && status.trouble.is_some(), "{status:?}");
    assert_eq!(witness_of(&cluster, 2), witness);
    let nonce = Nonce::from_bytes([7; 16]);
    let new_cluster = ClusterId::from_bytes([7; 16]);
    let epoch_floor = Epoch(0);
    let claim = Claim { nonce, new_cluster, expected_epoch: None, epoch_floor, accept_loss: false };
    assert_eq!(cluster.journal.open(claim).await.unwrap().epoch, witness.epoch, "now it shows it");
    cluster.pass(12_000).await;
    assert!(cluster.active().is_some(), "somebody has taken over since");
    let status = cluster.members[1].handle.status();
    assert!(status.active.is_some() && status.trouble.is_none(), "{status:?}");
}

#[tokio::test]
async fn the_time_in_which_an_engine_is_away_is_no_lag() {
    let mut cluster = Cluster::new(2).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(1_500).await;
    cluster.members.remove(1).shut_down().await;
    let mut witness = witness_of(&cluster, 2);
    // More than the take-over after the outage will show.
    witness.epoch = Epoch(witness.epoch.0 + 9);
    witness.store(&cluster.config(2).data_dir.join("witness")).unwrap();
    let lagging = cluster.start(cluster.config(2)).await.unwrap();
    cluster.members.push(lagging);
    cluster.pass(5_000).await;
    cluster.journal.set_available(false);
    cluster.pass(10_000).await;
    cluster.journal.set_available(true);
    // A node that had halted would look at no clock any more, and time would stand still.
    cluster.pass(5_000).await;
    assert!(cluster.members[1].handle.status().trouble.is_some(), "it still waits");
    let lagging = cluster.members.remove(1);
    assert!(matches!(cluster.pass_until_stopped(lagging).await, StopReason::Halted(_)));
}

#[tokio::test]
async fn a_token_that_the_journal_does_not_know_is_a_loss_also_where_the_slot_says_nothing() {
    let mut cluster = Cluster::new(1).await;
    cluster.members[0].grant("r", 1).await;
    cluster.members.remove(0).shut_down().await;
    let path = cluster.config(1).data_dir.join("witness");
    let mut witness = witness_of(&cluster, 1);
    // As a slot that was compacted away, which has no hash to compare.
    (witness.tail.slot, witness.token) = (Slot(0), Some(FencingToken::new(2).unwrap()));
    witness.store(&path).unwrap();
    let refused = cluster.start(cluster.config(1)).await.err();
    let Some(StartError::Open(OpenError::Regressed(why))) = refused else { panic!("{refused:?}") };
    assert!(why.contains("token 2 was already given out"), "{why}");
}
