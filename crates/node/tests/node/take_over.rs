//! Standbys take over: after silence, after a resignation, never while the active node lives.

use leasehold_core::Reply;
use leasehold_journal::{Defect, Fault, MemoryJournal};
use leasehold_node::{StartError, StopReason, SubmitError, WatchEnd, WatchFrom};
use leasehold_types::Slot;

use super::cluster::*;
use super::world::{acquire, renew, show, tenant, token, waiting};

#[tokio::test]
async fn the_first_node_founds_the_journal_and_the_others_stand_by() {
    let cluster = Cluster::new(3).await;
    assert_eq!(cluster.active(), Some(0));
    cluster.members[0].grant("r", 1).await;
    cluster.pass(300).await;
    for standby in &cluster.members[1..] {
        assert_eq!(standby.submit(renew(1)).await, Err(SubmitError::NotActive));
        let status = standby.handle.status();
        let active = status.active.expect("the active node announced itself");
        assert_eq!((&*active.node, &*active.url, active.here), ("node-1", "http://node-1", false));
        assert_eq!((status.epoch, status.lag), (cluster.members[0].handle.status().epoch, 0));
        assert_eq!((status.counts.leases, status.counts.last_token), (1, 1), "it is warm");
    }
}

#[tokio::test]
async fn no_standby_takes_over_while_an_idle_active_beats() {
    let cluster = Cluster::new(3).await;
    cluster.pass(60_000).await;
    assert_eq!(cluster.active(), Some(0));
    assert!(cluster.members.iter().skip(1).all(|member| member.lives.took_over.lock().unwrap().is_empty()));
}

#[tokio::test]
async fn silence_is_followed_by_a_take_over_that_keeps_tokens_and_gives_full_ttls() {
    let mut cluster = Cluster::new(3).await;
    assert_eq!(cluster.members[0].grant("kept", 1).await, 1);
    cluster.pass(9_000).await;
    let killed = cluster.kill(0);
    let took = cluster.pass_until(2_200, |cluster| cluster.active().is_some()).await;
    assert!(took >= 900, "not before the patience of the standby: {took} ms");
    let active = cluster.active().unwrap();
    let active = &cluster.members[active];
    assert_eq!(active.grant("new", 2).await, 2, "tokens go on growing");
    // 9 s of the 10 s ttl had passed before; the new epoch gives all of it again (R2).
    cluster.pass(9_000).await;
    assert!(matches!(active.ask(renew(1)).await, Reply::Renewed(_)));
    assert_eq!(token_of(active, 1).await, 1);
    drop(killed);
}

async fn token_of(member: &Member, lease: u8) -> u64 {
    match member.ask(show(lease)).await {
        Reply::Lease(lease) => lease.token.get(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tokens_grow_through_a_chain_of_take_overs() {
    let mut cluster = Cluster::new(2).await;
    let (mut last, mut killed) = (0, Vec::new());
    for round in 1..=6 {
        let active = cluster.active().unwrap();
        for n in 0..5 {
            let token = cluster.members[active].grant(&format!("r{round}-{n}"), round * 10 + n).await;
            assert_eq!(token, last + 1);
            last = token;
        }
        killed.push(cluster.kill(active));
        cluster.join().await;
        cluster.pass_until(2_500, |cluster| cluster.active().is_some()).await;
    }
    let epochs: Vec<_> = killed.iter().map(|member| member.handle.status().epoch).collect();
    assert!(epochs.is_sorted() && epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
}

#[tokio::test]
async fn a_resignation_hands_over_at_once() {
    let mut cluster = Cluster::new(3).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(300).await;
    let leaving = cluster.members.remove(0);
    let handle = leaving.handle.clone();
    assert_eq!(leaving.shut_down().await, StopReason::Shutdown);
    let took = cluster.pass_until(200, |cluster| cluster.active().is_some()).await;
    let active = cluster.active().unwrap();
    assert!(matches!(cluster.members[active].ask(renew(1)).await, Reply::Renewed(_)), "after {took} ms");
    assert_eq!(handle.submit(renew(1)).await, Err(SubmitError::NotActive));
    cluster.pass(10_000).await;
    let epochs: Vec<_> = cluster.members.iter().map(|member| member.handle.status().epoch).collect();
    assert!(epochs.iter().all(|epoch| epoch.0 == 2), "the other one stood back: {epochs:?}");
}

#[tokio::test]
async fn a_zombie_answers_nothing_and_becomes_a_standby() {
    let cluster = Cluster::new(2).await;
    let (zombie, heir) = (&cluster.members[0], &cluster.members[1]);
    zombie.grant("r", 1).await;
    let mut watch = zombie.handle.watch(tenant(), WatchFrom::Now);
    cluster.pass(500).await;
    zombie.freeze();
    let asked: Vec<_> = [renew(1), show(1), acquire("s", 2), waiting("r", 3, 60_000)]
        .into_iter()
        .map(|call| {
            let handle = zombie.handle.clone();
            tokio::spawn(async move { handle.submit(call).await })
        })
        .collect();
    tokio::task::yield_now().await;
    cluster.pass_until(2_500, |_| heir.is_active()).await;
    assert_eq!(heir.grant("s", 4).await, 2);
    zombie.thaw();
    for call in asked {
        let answer = call.await.unwrap();
        assert!(
            matches!(answer, Err(SubmitError::NotActive | SubmitError::StoreUnavailable(_))),
            "{answer:?}"
        );
    }
    assert_eq!(watch.next().await, Err(WatchEnd));
    cluster.pass(300).await;
    assert_eq!(*zombie.lives.stepped_down.lock().unwrap(), [StopReason::Fenced]);
    assert_eq!(zombie.submit(renew(1)).await, Err(SubmitError::NotActive));
    let active = zombie.handle.status().active.expect("it follows the new active node");
    assert_eq!(&*active.url, "http://node-2");
    // And back: what was a zombie is warm again.
    heir.freeze();
    cluster.pass_until(2_500, |_| zombie.is_active()).await;
    assert_eq!(zombie.grant("t", 5).await, 3);
    assert!(matches!(zombie.ask(renew(1)).await, Reply::Renewed(_)));
}

#[tokio::test]
async fn a_journal_that_confirms_everybody_would_let_a_zombie_answer() {
    let cluster = Cluster::on(MemoryJournal::with_defect(Defect::StaleConfirm), 2).await;
    let (zombie, heir) = (&cluster.members[0], &cluster.members[1]);
    zombie.grant("r", 1).await;
    cluster.pass(500).await;
    zombie.freeze();
    let handle = zombie.handle.clone();
    let asked = tokio::spawn(async move { handle.submit(renew(1)).await });
    tokio::task::yield_now().await;
    cluster.pass_until(2_500, |_| heir.is_active()).await;
    zombie.thaw();
    assert!(asked.await.unwrap().is_ok(), "so it is the confirmation that keeps the others silent");
}

#[tokio::test]
async fn a_duel_has_one_winner_and_the_loser_stands_by() {
    for _ in 0..5 {
        let mut cluster = Cluster::new(4).await;
        cluster.pass(200).await;
        let killed = cluster.kill(0);
        cluster.pass_until(2_500, |cluster| cluster.active().is_some()).await;
        cluster.pass(5_000).await;
        let took_over: usize =
            cluster.members.iter().map(|member| member.lives.took_over.lock().unwrap().len()).sum();
        assert_eq!(took_over, 1);
        assert_eq!(cluster.members[cluster.active().unwrap()].handle.status().epoch.0, 2);
        drop(killed);
    }
}

#[tokio::test]
async fn an_engine_that_is_gone_for_a_while_comes_back_without_a_change_of_tokens() {
    let cluster = Cluster::new(3).await;
    cluster.members[0].grant("r", 1).await;
    cluster.pass(200).await;
    cluster.journal.set_available(false);
    cluster.pass_until(5_000, |cluster| cluster.active().is_none()).await;
    cluster.pass(5_000).await;
    for member in &cluster.members {
        let answer = member.submit(acquire("s", 2)).await;
        assert!(matches!(answer, Err(SubmitError::StoreUnavailable(_))), "{answer:?}");
        assert!(member.handle.status().trouble.is_some());
    }
    cluster.journal.set_available(true);
    let took = cluster.pass_until(3_000, |cluster| cluster.active().is_some()).await;
    assert!(took <= 200, "nobody is waited for in an epoch of one's own: {took} ms");
    let active = &cluster.members[cluster.active().unwrap()];
    assert_eq!(*active.lives.took_over.lock().unwrap(), [1, 2], "those that stood by counted silence anew");
    assert_eq!(active.grant("s", 3).await, 2);
    assert!(matches!(active.ask(renew(1)).await, Reply::Renewed(_)));
}

#[tokio::test]
async fn what_was_in_flight_at_a_take_over_is_in_doubt_and_happened_at_most_once() {
    let cluster = Cluster::new(2).await;
    let (active, heir) = (&cluster.members[0], &cluster.members[1]);
    active.grant("r", 1).await;
    cluster.pass(200).await;
    cluster.journal.fail_next_append(Fault::UnknownLate);
    let handle = active.handle.clone();
    let in_doubt = tokio::spawn(async move { handle.submit(acquire("s", 2)).await });
    while !in_doubt.is_finished() {
        cluster.pass(50).await;
    }
    // Resolved while the node was active: the same bytes in the same slot.
    assert_eq!(token(in_doubt.await.unwrap().unwrap().get()), 2);
    active.freeze();
    cluster.pass_until(2_500, |_| heir.is_active()).await;
    assert_eq!(heir.grant("t", 3).await, 3);
}

#[tokio::test]
async fn a_standby_halts_when_the_engine_has_lost_what_it_followed() {
    let mut cluster = Cluster::new(2).await;
    for n in 1..=5 {
        cluster.members[0].grant(&format!("r{n}"), n).await;
    }
    cluster.pass(300).await;
    let killed = cluster.kill(0);
    cluster.journal.lose_after(Slot(3));
    let halting = cluster.members.remove(0);
    let reason = cluster.pass_until_stopped(halting).await;
    let StopReason::Halted(message) = reason else { panic!("{reason:?}") };
    assert!(message.contains("regressed") && message.contains("leasehold recover"), "{message}");
    drop(killed);
}

#[tokio::test]
async fn a_node_that_cannot_reach_the_journal_does_not_start() {
    let mut cluster = Cluster::new(1).await;
    cluster.journal.set_available(false);
    assert!(matches!(cluster.try_join().await.err(), Some(StartError::Open(_))));
}

#[tokio::test]
async fn a_standby_shuts_down_without_touching_the_journal() {
    let mut cluster = Cluster::new(2).await;
    cluster.pass(300).await;
    let tail = cluster.journal.tail();
    let standby = cluster.members.remove(1);
    assert_eq!(standby.shut_down().await, StopReason::Shutdown);
    assert_eq!((cluster.journal.tail(), cluster.active()), (tail, Some(0)));
}
