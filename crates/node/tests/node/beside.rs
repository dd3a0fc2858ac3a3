//! Those who live on the loop's own thread.

use std::sync::Arc;
use std::time::Duration;

use leasehold_node::parts::STALL;
use leasehold_node::{Left, StopReason, SubmitError};
use tokio::sync::oneshot;

use super::cluster::*;
use super::hindered::world_behind_a_gate;
use super::world::{acquire, renew, token, until, waiting};

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn whoever_is_there_is_on_the_loops_thread_and_is_answered_like_anybody() {
    let cluster = Cluster::new(1).await;
    let handle = cluster.members[0].handle.clone();
    let (tell, told) = oneshot::channel();
    let asking = handle.clone();
    let work = async move {
        let granted = asking.submit(acquire("r", 1)).await.unwrap();
        let _ = tell.send((thread_name(), token(granted.get())));
    };
    let left = handle.beside_the_loop().expect("a place is free").run(work).await;
    assert_eq!(left, Left::Done);
    assert_eq!(told.await.unwrap(), ("leasehold-loop".to_owned(), 1));
}

#[tokio::test]
async fn there_is_no_place_beside_a_standby() {
    let cluster = Cluster::new(2).await;
    assert!(
        cluster.members[1].handle.beside_the_loop().is_none(),
        "it forwards, and may have much to replay"
    );
}

/// The thread is blocked, and cannot tell anybody that nothing moves (N5).
#[tokio::test]
async fn behind_a_stuck_disk_who_is_there_is_given_up_and_nobody_comes_to_them() {
    let (world, gate) = world_behind_a_gate().await;
    let (tell, told) = oneshot::channel();
    let asking = world.handle.clone();
    gate.set_shut(true);
    let before = *gate.arrived.borrow();
    let beside = world.handle.beside_the_loop().expect("a place is free");
    let given_up = tokio::spawn(beside.run(async move {
        drop(asking.submit(acquire("r", 1)).await);
        let _ = tell.send(thread_name());
    }));
    until(&gate.arrived, before + 1).await;
    world.clock.manual.advance(STALL - Duration::from_millis(1));
    tokio::task::yield_now().await;
    assert!(world.handle.beside_the_loop().is_some() && !given_up.is_finished(), "it may be slow");
    world.clock.manual.advance(STALL / 4);
    assert_eq!(given_up.await.unwrap(), Left::Stuck);
    assert!(world.handle.beside_the_loop().is_none(), "a newcomer is told elsewhere");
    let refused = world.handle.submit(renew(1)).await;
    assert!(matches!(refused, Err(SubmitError::StoreUnavailable(_))), "here, for instance: {refused:?}");
    gate.set_shut(false);
    assert!(told.await.is_err(), "it was dropped when the thread went on");
    while world.handle.status().stalled {
        tokio::task::yield_now().await;
    }
    assert!(world.handle.beside_the_loop().is_some());
}

/// The loop waits for them before it goes: what it told them last, they can pass on.
#[tokio::test]
async fn who_is_there_hears_of_the_end_and_takes_its_leave() {
    let mut cluster = Cluster::new(1).await;
    let member = cluster.members.remove(0);
    member.grant("r", 1).await;
    let (asking, beside) = (member.handle.clone(), member.handle.beside_the_loop().unwrap());
    let (begin, begun) = oneshot::channel();
    let (tell, told) = oneshot::channel();
    let work = beside.run(async move {
        let _ = begin.send(());
        let answer = asking.submit(waiting("r", 2, 60_000)).await;
        // As if it were to be written to a socket that takes its time.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let _ = tell.send(answer.map(drop));
    });
    let work = tokio::spawn(work);
    begun.await.unwrap();
    assert_eq!(member.shut_down().await, StopReason::Shutdown);
    assert_eq!(told.await.expect("it was not cut off"), Err(SubmitError::ShuttingDown));
    assert_eq!(work.await.unwrap(), Left::Done);
}

/// An append to the embedded journal does not wait, it blocks: with always more to append the loop would never let go.
#[tokio::test]
async fn between_two_appends_that_block_who_is_there_has_a_turn() {
    let (world, gate) = world_behind_a_gate().await;
    gate.set_shut(true);
    let before = *gate.arrived.borrow();
    let first = world.spawn(acquire("first", 1));
    until(&gate.arrived, before + 1).await;
    let second = world.spawn(acquire("second", 2));
    let (tell, told) = oneshot::channel();
    let seen = Arc::clone(&gate);
    let beside = world.handle.beside_the_loop().expect("a place is free");
    let work = tokio::spawn(beside.run(async move {
        let _ = tell.send(*seen.arrived.borrow());
    }));
    tokio::task::yield_now().await;
    gate.set_shut(false);
    assert_eq!(told.await.unwrap(), before + 1, "after the first append, and not after both");
    for granted in [first, second] {
        granted.await.unwrap().unwrap();
    }
    assert_eq!(work.await.unwrap(), Left::Done);
}

/// Those beside the loop read nothing while it decides: what has come for them by then is of the same commit.
#[tokio::test]
async fn what_comes_while_many_are_decided_is_of_the_same_commit() {
    let (world, _) = world_behind_a_gate().await;
    world.grant("before", 255).await;
    let before = world.seen.batches.lock().unwrap().len();
    let mut lane = world.handle.lane();
    let beside = world.handle.beside_the_loop().expect("a place is free");
    let left = beside.run(async move {
        let calls = |from: u8| (from..from + 10).map(|tag| (tag, acquire(&format!("r{tag}"), tag + 1)));
        lane.send(calls(0));
        // Its next turn is after the loop's.
        tokio::task::yield_now().await;
        lane.send(calls(10));
        let mut answers = Vec::new();
        while lane.pending() > 0 {
            lane.answers(&mut answers).await;
        }
    });
    assert_eq!(left.await, Left::Done);
    assert_eq!(world.seen.batches.lock().unwrap()[before..], [20]);
}

/// Where there are several: whoever has something to ask at the moment is of the same commit as the one who was first.
#[tokio::test]
async fn before_an_append_of_a_few_everybody_there_has_a_turn() {
    let (world, _) = world_behind_a_gate().await;
    world.grant("before", 255).await;
    for (others, commits) in [(0, vec![1, 1]), (1, vec![2])] {
        let before = world.seen.batches.lock().unwrap().len();
        let mut lane = world.handle.lane();
        let beside = world.handle.beside_the_loop().expect("a place is free");
        let _others: Vec<_> =
            (0..others).map(|_| world.handle.beside_the_loop().expect("a place is free")).collect();
        let left = beside.run(async move {
            let call = |tag: u8| [(tag, acquire(&format!("{others}/{tag}"), 10 * others + tag))];
            lane.send(call(1));
            // Its next turn is after the loop's.
            tokio::task::yield_now().await;
            lane.send(call(2));
            let mut answers = Vec::new();
            while lane.pending() > 0 {
                lane.answers(&mut answers).await;
            }
        });
        assert_eq!(left.await, Left::Done);
        assert_eq!(world.seen.batches.lock().unwrap()[before..], commits, "with {others} others");
    }
}
