//! Many calls at once, and their answers at once.

use std::time::Duration;

use leasehold_core::Reply;
use leasehold_journal::{Limits, MemoryJournal};
use leasehold_node::{Lane, SubmitError};

use super::hindered::world_behind_a_gate;
use super::world::*;

/// Waits until so many calls are answered, and gives the answers in the order of their tags.
async fn answered(lane: &mut Lane<u8>, count: usize) -> Vec<(u8, Answer)> {
    let mut answers = Vec::new();
    while answers.len() < count {
        let come = tokio::time::timeout(Duration::from_secs(20), lane.answers(&mut answers));
        come.await.expect("answers come within seconds");
    }
    answers.sort_by_key(|(tag, _)| *tag);
    answers
}

fn reply(answer: &Answer) -> &Reply {
    answer.as_ref().unwrap().get()
}

#[tokio::test]
async fn a_batch_is_decided_in_order_and_committed_at_once() {
    let world = World::new().await;
    // The first commit may carry what a node says of itself.
    world.grant("before", 9).await;
    let mut lane = world.handle.lane();
    let before = world.seen.batches.lock().unwrap().len();
    lane.send([(0, acquire("r", 1)), (1, acquire("r", 2)), (2, release(1)), (3, acquire("r", 3))]);
    assert_eq!(lane.pending(), 4);
    let answers = answered(&mut lane, 4).await;
    assert_eq!(lane.pending(), 0);
    assert_eq!(token(reply(&answers[0].1)), 2);
    assert!(matches!(reply(&answers[1].1), Reply::NotGranted(_)));
    assert!(matches!(reply(&answers[2].1), Reply::Released { .. }));
    assert_eq!(token(reply(&answers[3].1)), 3);
    let batches = &world.seen.batches.lock().unwrap()[before..];
    assert_eq!(batches, [3], "three facts in one commit");
    assert_eq!(world.handle.status().queued, 0);
}

#[tokio::test]
async fn what_was_added_is_sent_also_when_whoever_adds_leaves_early() {
    let world = World::new().await;
    let mut lane = world.handle.lane();
    let mut sending = lane.begin(2);
    sending.add(0, acquire("r", 1), None);
    drop(sending);
    let answers = answered(&mut lane, 1).await;
    assert_eq!(token(reply(&answers[0].1)), 1);
    assert_eq!((lane.pending(), world.handle.status().queued), (0, 0));
}

/// Sends so many acquires at once, checks that they are granted in their order, and gives the sizes of their commits.
async fn commits_of(world: &World, calls: u8) -> Vec<usize> {
    world.grant("before", 255).await;
    let before = world.seen.batches.lock().unwrap().len();
    let mut lane = world.handle.lane();
    lane.send((0..calls).map(|tag| (tag, acquire(&format!("r{tag}"), tag + 1))));
    let answers = answered(&mut lane, calls.into()).await;
    let tokens: Vec<u64> = answers.iter().map(|(_, answer)| token(reply(answer))).collect();
    assert_eq!(tokens, (2..u64::from(calls) + 2).collect::<Vec<_>>(), "in their order");
    assert_eq!(world.handle.status().queued, 0);
    world.seen.batches.lock().unwrap()[before..].to_vec()
}

#[tokio::test]
async fn half_of_many_is_committed_first_so_that_the_other_half_is_decided_meanwhile() {
    assert_eq!(commits_of(&World::new().await, 200).await, [100, 100]);
    assert_eq!(commits_of(&World::new().await, 64).await, [64], "an engine takes longer for two commits");
}

#[tokio::test]
async fn where_commits_take_long_nothing_is_halved() {
    let world = World::new().await;
    world.journal.set_paused(true);
    let mut lane = world.handle.lane();
    lane.send([(0, acquire("slow", 254))]);
    world.settle().await;
    world.clock.pass(100).await;
    world.journal.set_paused(false);
    answered(&mut lane, 1).await;
    lane.send([(1, release(254))]);
    answered(&mut lane, 1).await;
    let before = world.seen.batches.lock().unwrap().len();
    lane.send((0..200).map(|tag| (tag, acquire(&format!("r{tag}"), tag + 1))));
    answered(&mut lane, 200).await;
    assert_eq!(world.seen.batches.lock().unwrap()[before..], [200]);
}

#[tokio::test]
async fn on_this_machine_nothing_is_halved() {
    for calls in [64, 200] {
        let journal = MemoryJournal::new();
        journal.set_limits(Limits { body_bytes: 1 << 20, chunk_bytes: 1 << 20, confirm_is_free: true });
        let world = World::with(journal, |_| {}).await;
        assert_eq!(commits_of(&world, calls).await, [usize::from(calls)]);
    }
}

#[tokio::test]
async fn a_waiter_is_answered_when_its_turn_comes() {
    let world = World::new().await;
    let (mut first, mut second) = (world.handle.lane(), world.handle.lane());
    first.send([(0, acquire("r", 1))]);
    answered(&mut first, 1).await;
    second.send([(0, waiting("r", 2, 60_000)), (1, show(1))]);
    assert_eq!(answered(&mut second, 1).await[0].0, 1, "the other call does not wait for the waiter");
    first.send([(1, release(1))]);
    answered(&mut first, 1).await;
    assert_eq!(token(reply(&answered(&mut second, 1).await[0].1)), 2);
}

#[tokio::test]
async fn a_lane_that_is_dropped_leaves_nothing_behind() {
    let world = World::new().await;
    world.grant("held", 9).await;
    let mut lane = world.handle.lane();
    lane.send([(0, waiting("held", 1, 60_000)), (1, waiting("held", 2, 60_000))]);
    world.settle().await;
    assert_eq!(world.handle.status().counts.waiters, 2);
    drop(lane);
    world.settle().await;
    assert_eq!(world.handle.status().counts.waiters, 0);

    world.journal.set_paused(true);
    let mut lane = world.handle.lane();
    let chosen = acquire_with("chosen", |acquire| acquire.lease_id_chosen = true);
    lane.send([(0, acquire("unheard", 3)), (1, chosen)]);
    world.settle().await;
    drop(lane);
    world.journal.set_paused(false);
    until(&world.seen.given_back, 1).await;
    let held: Vec<_> = world.leases().await.into_iter().map(|(resource, _)| resource).collect();
    assert_eq!(held, ["chosen", "held"], "what can be asked for again stays");
}

#[tokio::test]
async fn answers_that_were_not_fetched_are_given_back_too() {
    let world = World::new().await;
    let mut lane = world.handle.lane();
    lane.send([(0, acquire("r", 1))]);
    world.settle().await;
    drop(lane);
    until(&world.seen.given_back, 1).await;
    assert_eq!(world.leases().await, []);
}

#[tokio::test]
async fn on_a_stuck_disk_each_call_is_told_how_far_it_came() {
    let (world, gate) = world_behind_a_gate().await;
    world.grant("held", 9).await;
    gate.set_shut(true);
    let before = *gate.arrived.borrow();
    let mut lane = world.handle.lane();
    lane.send([(0, acquire("r", 1)), (1, acquire_with("s", |acquire| acquire.lease_id = lease_id(4)))]);
    until(&gate.arrived, before + 1).await;
    lane.send([(2, renew(9)), (3, waiting("held", 3, 60_000))]);
    let asked = tokio::spawn(async move { (answered(&mut lane, 4).await, lane) });
    while !asked.is_finished() {
        world.clock.manual.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (answers, mut lane) = asked.await.unwrap();
    for (tag, answer) in &answers {
        match tag {
            0 | 1 => assert!(matches!(answer, Err(SubmitError::OutcomeUnknown(_))), "it may land yet"),
            _ => assert!(matches!(answer, Err(SubmitError::StoreUnavailable(_))), "it was not taken"),
        }
    }
    assert_eq!(lane.pending(), 0);
    lane.send([(4, renew(9))]);
    assert!(matches!(answered(&mut lane, 1).await[0].1, Err(SubmitError::StoreUnavailable(_))), "at once");

    gate.set_shut(false);
    // A late answer is only noticed by a lane that is used or dropped.
    while world.handle.status().stalled {
        tokio::task::yield_now().await;
    }
    lane.send([(5, renew(9))]);
    assert!(matches!(reply(&answered(&mut lane, 1).await[0].1), Reply::Renewed(_)));
    until(&world.seen.given_back, 2).await;
    assert_eq!(world.leases().await, [("held".to_owned(), 1)]);
    assert_eq!(world.handle.status().queued, 0);
}

/// The timer that notices stillness is set by the first calls and left to ring; it has to be there for later ones.
#[tokio::test]
async fn a_lane_that_was_idle_for_long_notices_a_stuck_disk_too() {
    let (world, gate) = world_behind_a_gate().await;
    let mut lane = world.handle.lane();
    lane.send([(0, acquire("r", 1))]);
    answered(&mut lane, 1).await;
    world.clock.pass(3_000).await;
    gate.set_shut(true);
    let before = *gate.arrived.borrow();
    lane.send([(1, acquire("s", 2))]);
    until(&gate.arrived, before + 1).await;
    let asked = tokio::spawn(async move { answered(&mut lane, 1).await });
    while !asked.is_finished() {
        world.clock.manual.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(asked.await.unwrap()[0].1, Err(SubmitError::OutcomeUnknown(_))));
    gate.set_shut(false);
}

#[tokio::test]
async fn in_overload_the_rest_of_a_batch_is_shed() {
    let world = World::with(MemoryJournal::new(), |config| {
        config.queue = 8;
        config.queue_reserve = 4;
    })
    .await;
    world.grant("held", 200).await;
    let mut lane = world.handle.lane();
    lane.send((0..6).map(|n| (n, acquire(&format!("r{n}"), n))).chain([(6, renew(200))]));
    let answers = answered(&mut lane, 7).await;
    let shed = |answer: &Answer| *answer == Err(SubmitError::Overloaded);
    assert!(answers[..4].iter().all(|(_, answer)| !shed(answer)));
    assert!(answers[4..6].iter().all(|(_, answer)| shed(answer)), "acquires go first");
    assert!(matches!(reply(&answers[6].1), Reply::Renewed(_)), "renewals have a reserve");
}

#[tokio::test]
async fn a_node_that_stops_answers_everything() {
    let world = World::new().await;
    world.grant("held", 9).await;
    let mut lane = world.handle.lane();
    lane.send([(0, waiting("held", 1, 60_000))]);
    world.settle().await;
    world.running.shutdown().await;
    assert!(matches!(answered(&mut lane, 1).await[0].1, Err(SubmitError::ShuttingDown)));
    lane.send([(1, acquire("r", 2))]);
    assert!(answered(&mut lane, 1).await[0].1.is_err());
}
