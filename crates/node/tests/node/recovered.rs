//! One node recovers a journal that lost writes; what the others had seen is given up with it (J9).

use leasehold_core::Operator;
use leasehold_journal::OpenError;
use leasehold_node::maintenance::{Recovered, recover};
use leasehold_node::{StartError, StopReason};
use leasehold_types::Slot;

use super::cluster::*;

async fn recovered(cluster: &Cluster, number: usize, token_floor: Option<u64>) -> Recovered {
    let operator = Operator { actor: "ada".into(), reason: "the primary is gone".into() };
    let data = cluster.config(number).data_dir;
    recover(&cluster.journal, &data, operator, token_floor, &*cluster.time).await.unwrap()
}

/// Three nodes that have all seen more than the journal has kept, and are down.
async fn three_after_a_loss() -> Cluster {
    let mut cluster = Cluster::new(3).await;
    let kept = cluster.journal.tail().slot;
    for lease in 1..=4 {
        cluster.members[0].grant(&format!("r{lease}"), lease).await;
    }
    // Every standby writes its witness once a second.
    cluster.pass(1_500).await;
    for member in std::mem::take(&mut cluster.members).into_iter().rev() {
        assert_eq!(member.shut_down().await, StopReason::Shutdown);
    }
    cluster.journal.lose_after(Slot(kept.0 + 1));
    cluster
}

#[tokio::test]
async fn after_a_recovery_on_one_node_every_node_serves_again() {
    let mut cluster = three_after_a_loss().await;
    let refused = cluster.start(cluster.config(1)).await.err();
    assert!(matches!(refused, Some(StartError::Open(OpenError::Regressed(_)))), "{refused:?}");
    let done = recovered(&cluster, 2, None).await;
    assert_eq!(done.generation.0, 2);
    for number in [3, 1, 2] {
        let member = cluster.start(cluster.config(number)).await.unwrap();
        cluster.members.push(member);
    }
    cluster.pass(1_500).await;
    let mut last = done.token_floor;
    for round in 1..=3 {
        cluster.pass_until(3_000, |cluster| cluster.active().is_some()).await;
        let active = cluster.members.remove(cluster.active().unwrap());
        let token = active.grant(&format!("after {round}"), 10 + round).await;
        assert!(token > last, "{token} after {last}");
        last = token;
        active.shut_down().await;
    }
}

#[tokio::test]
async fn a_second_loss_halts_the_nodes_again() {
    let cluster = three_after_a_loss().await;
    recovered(&cluster, 2, None).await;
    let first = cluster.start(cluster.config(1)).await.unwrap();
    let before = cluster.journal.tail().slot;
    first.grant("lost again", 20).await;
    first.shut_down().await;
    cluster.journal.lose_after(before);
    let refused = cluster.start(cluster.config(1)).await.err();
    assert!(matches!(refused, Some(StartError::Open(OpenError::Regressed(_)))), "{refused:?}");
}

#[tokio::test]
async fn a_node_that_has_seen_a_larger_token_than_the_floor_is_not_let_in() {
    let cluster = three_after_a_loss().await;
    recovered(&cluster, 2, None).await;
    // As if this one alone had seen what the floor does not cover.
    let path = cluster.config(3).data_dir.join("witness");
    let mut witness = leasehold_journal::Witness::load(&path).unwrap().unwrap();
    witness.token = Some(leasehold_types::FencingToken::new(1 << 45).unwrap());
    witness.store(&path).unwrap();
    let refused = cluster.start(cluster.config(3)).await.err();
    assert!(matches!(refused, Some(StartError::Open(OpenError::Regressed(_)))), "{refused:?}");

    let done = recovered(&cluster, 2, Some(1 << 46)).await;
    assert_eq!(done.token_floor, 1 << 46);
    let third = cluster.start(cluster.config(3)).await.unwrap();
    assert_eq!(third.grant("r", 30).await, (1 << 46) + 1);
}

#[tokio::test]
async fn a_standby_that_ran_through_the_recovery_goes_on() {
    let mut cluster = Cluster::new(2).await;
    let kept = cluster.journal.tail().slot;
    cluster.members[0].grant("lost", 1).await;
    cluster.pass(1_500).await;
    let killed = cluster.kill(0);
    cluster.journal.lose_after(kept);
    let done = recovered(&cluster, 9, None).await;
    cluster.pass_until(6_000, |cluster| cluster.active().is_some()).await;
    assert_eq!(cluster.members[0].grant("new", 2).await, done.token_floor + 1);
    drop(killed);
}

#[tokio::test]
async fn a_node_that_died_active_claims_its_own_epoch_without_waiting() {
    let mut cluster = Cluster::new(1).await;
    cluster.members[0].grant("kept", 1).await;
    let beside = cluster.start(cluster.config(1)).await.err();
    assert!(matches!(beside, Some(StartError::Open(OpenError::InUse(_)))), "{beside:?}");
    // The process is gone without a word, and with it its lock; its data directory is not.
    let data = cluster.config(1).data_dir;
    let killed = cluster.kill(0);
    let moved = data.with_extension("later");
    std::fs::create_dir(&moved).unwrap();
    std::fs::copy(data.join("witness"), moved.join("witness")).unwrap();
    let mut config = cluster.config(1);
    config.data_dir = moved;
    let again = cluster.start(config).await.unwrap();
    assert!(again.is_active(), "no time has passed");
    assert_eq!(again.grant("new", 2).await, 2);
    // Another node knows nothing of that claim, and has to wait.
    let other = cluster.start(cluster.config(2)).await.unwrap();
    assert!(!other.is_active());
    drop((killed, again));
}
