//! What callers are told when the journal is stuck, and when too much is asked.

use std::time::Duration;

use leasehold_core::Reply;
use leasehold_journal::MemoryJournal;
use leasehold_node::SubmitError;

use super::hindered::world_behind_a_gate;
use super::world::*;

#[tokio::test]
async fn on_a_stuck_disk_renewals_are_refused_even_while_the_loop_is_blocked() {
    let (world, gate) = world_behind_a_gate().await;
    world.grant("held", 9).await;

    gate.set_shut(true);
    let before = *gate.arrived.borrow();
    let taken = world.spawn(acquire("r", 1));
    until(&gate.arrived, before + 1).await;
    let queued = world.spawn(renew(9));
    tokio::task::yield_now().await;
    world.clock.manual.advance(Duration::from_millis(1_999));
    assert!(!world.handle.status().stalled);
    world.clock.manual.advance(Duration::from_millis(1));
    assert!(world.handle.status().stalled);
    assert!(matches!(queued.await.unwrap(), Err(SubmitError::StoreUnavailable(_))), "it was not taken");
    assert!(matches!(taken.await.unwrap(), Err(SubmitError::OutcomeUnknown(_))), "it may land yet");
    assert!(matches!(world.handle.submit(renew(9)).await, Err(SubmitError::StoreUnavailable(_))), "at once");

    gate.set_shut(false);
    until(&world.seen.given_back, 1).await;
    while world.handle.status().stalled {
        tokio::task::yield_now().await;
    }
    assert!(matches!(world.ask(renew(9)).await, Reply::Renewed(_)), "the stall counted as a pause");
    assert_eq!(
        world.leases().await,
        [("held".to_owned(), 1)],
        "the grant that nobody heard of was given back"
    );
}

#[tokio::test]
async fn a_call_that_left_before_it_was_taken_never_happens() {
    let (world, gate) = world_behind_a_gate().await;
    gate.set_shut(true);
    let first = world.spawn(acquire("first", 1));
    until(&gate.arrived, 1).await;
    let left = world.spawn(acquire("left", 2));
    tokio::task::yield_now().await;
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    gate.set_shut(false);
    assert_eq!(token(first.await.unwrap().unwrap().get()), 1);
    assert_eq!(world.grant("next", 3).await, 2, "no token was spent on it");
    assert_eq!(world.handle.status().queued, 0);
}

#[tokio::test]
async fn every_call_is_answered_by_its_deadline() {
    let world = World::new().await;
    world.grant("held", 9).await;
    let waiter = world.spawn(waiting("held", 1, 3_000));
    world.clock.pass(3_200).await;
    assert!(matches!(waiter.await.unwrap().unwrap().get(), Reply::NotGranted(_)), "its wait ended in order");

    world.journal.set_paused(true);
    let waiter = world.spawn(waiting("free", 2, 3_000));
    world.clock.pass(12_800).await;
    assert!(!waiter.is_finished());
    world.clock.pass(400).await;
    assert!(matches!(waiter.await.unwrap(), Err(SubmitError::OutcomeUnknown(_))));
}

#[tokio::test]
async fn in_overload_acquires_are_shed_and_renewals_get_through() {
    let world = World::with(MemoryJournal::new(), |config| {
        config.queue = 8;
        config.queue_reserve = 4;
    })
    .await;
    world.grant("held", 200).await;
    world.journal.set_paused(true);
    // The loop takes until its own backlog is full; then the queue fills.
    let mut calls = Vec::new();
    for n in 1..=12 {
        calls.push(world.spawn(acquire(&format!("r{n}"), n)));
        tokio::task::yield_now().await;
        while world.handle.status().queued > usize::from(n.saturating_sub(8)) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(world.handle.submit(acquire("more", 31)).await, Err(SubmitError::Overloaded));
    assert_eq!(world.handle.submit(open_session()).await, Err(SubmitError::Overloaded));
    assert_eq!(world.handle.submit(show(200)).await, Err(SubmitError::Overloaded));
    let renewal = world.spawn(renew(200));
    tokio::task::yield_now().await;
    assert!(!renewal.is_finished(), "it has a place");
    world.journal.set_paused(false);
    assert!(matches!(renewal.await.unwrap().unwrap().get(), Reply::Renewed(_)));
    for call in calls {
        assert!(matches!(call.await.unwrap().unwrap().get(), Reply::Granted(_)));
    }
}

#[tokio::test]
async fn too_many_waiters_are_turned_away() {
    let world = World::with(MemoryJournal::new(), |config| config.waiters = 2).await;
    world.grant("held", 9).await;
    let _waiters = [world.spawn(waiting("held", 1, 60_000)), world.spawn(waiting("held", 2, 60_000))];
    world.settle().await;
    assert_eq!(world.handle.submit(waiting("held", 3, 60_000)).await, Err(SubmitError::Overloaded));
    assert!(
        matches!(world.ask(acquire("held", 4)).await, Reply::NotGranted(_)),
        "without waiting it is answered"
    );
}
