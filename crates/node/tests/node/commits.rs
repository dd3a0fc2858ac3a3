//! Nothing is told before it is durable, whatever the journal does.

use std::time::Duration;

use leasehold_core::{Refusal, Reply};
use leasehold_journal::{Fault, Limits, MemoryJournal, Room};
use leasehold_node::{StopReason, SubmitError, WatchEnd, WatchFrom};

use super::world::*;

#[tokio::test]
async fn a_grant_a_refusal_and_a_read_wait_for_the_commit() {
    let world = World::new().await;
    world.journal.set_paused(true);
    let grant = world.spawn(acquire("r", 1));
    world.settle().await;
    let (refusal, read) = (world.spawn(acquire("r", 2)), world.spawn(show(1)));
    world.settle().await;
    assert_eq!(world.handle.status().queued, 0, "all three were taken");
    assert_eq!(world.handle.status().counts.last_token, 0, "nor do sizes tell of it");
    assert!(!grant.is_finished() && !refusal.is_finished() && !read.is_finished());
    world.journal.set_paused(false);
    assert!(matches!(grant.await.unwrap().unwrap().get(), Reply::Granted(_)));
    assert!(matches!(refusal.await.unwrap().unwrap().get(), Reply::NotGranted(_)));
    assert!(matches!(read.await.unwrap().unwrap().get(), Reply::Lease(_)));
    world.settle().await;
    assert_eq!(world.handle.status().counts.last_token, 1);
}

#[tokio::test]
async fn while_a_batch_is_in_flight_the_next_one_fills() {
    let world = World::new().await;
    world.journal.set_paused(true);
    let first = world.spawn(acquire("first", 1));
    world.settle().await;
    let rest: Vec<_> = (2..=50).map(|n| world.spawn(acquire(&format!("r{n}"), n))).collect();
    world.settle().await;
    world.journal.set_paused(false);
    first.await.unwrap().unwrap();
    for call in rest {
        call.await.unwrap().unwrap();
    }
    assert_eq!(*world.seen.batches.lock().unwrap(), [2, 49], "the first fact of a journal is its format");
}

/// An engine is given the next batch before anybody is told of the last; but nobody waits for the next to hear of the last.
#[tokio::test]
async fn what_is_durable_is_told_while_the_next_batch_is_in_flight() {
    let world = World::new().await;
    world.journal.set_paused(true);
    let first = world.spawn(acquire("first", 1));
    world.settle().await;
    let second = world.spawn(acquire("second", 2));
    world.settle().await;
    world.journal.let_one_pass();
    assert_eq!(token(first.await.unwrap().unwrap().get()), 1);
    world.settle().await;
    assert!(world.journal.is_waited_for(), "the second batch is in flight");
    assert_eq!(world.seen.batches.lock().unwrap().len(), 1, "and the first was shown");
    assert!(!second.is_finished());
    // A renewal needs a confirmation that begins after it, and is told while the next one is under way.
    world.journal.set_paused(false);
    assert_eq!(token(second.await.unwrap().unwrap().get()), 2);
    world.journal.set_paused(true);
    let renewal = world.spawn(renew(1));
    world.settle().await;
    let third = world.spawn(acquire("third", 3));
    world.settle().await;
    world.journal.let_one_pass();
    assert!(matches!(renewal.await.unwrap().unwrap().get(), Reply::Renewed(_)));
    world.settle().await;
    assert!(world.journal.is_waited_for() && !third.is_finished());
    world.journal.set_paused(false);
    assert_eq!(token(third.await.unwrap().unwrap().get()), 3);
}

#[tokio::test]
async fn an_unknown_outcome_ends_as_one_grant() {
    for fault in [Fault::UnknownBefore, Fault::UnknownAfter, Fault::UnknownLate] {
        let world = World::new().await;
        world.journal.fail_next_append(fault);
        let grant = world.spawn(acquire("r", 1));
        while *world.seen.unknown.borrow() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!grant.is_finished(), "{fault:?}");
        world.settle().await;
        assert_eq!(token(grant.await.unwrap().unwrap().get()), 1, "{fault:?}");
        assert_eq!(world.journal.tail().slot.0, 1, "{fault:?}");
        assert_eq!(world.grant("s", 2).await, 2, "{fault:?}");
    }
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_stops_the_node() {
    let mut world = World::new().await;
    let waiter = {
        world.grant("held", 9).await;
        world.spawn(waiting("held", 8, 60_000))
    };
    world.settle().await;
    world.journal.set_available(false);
    let in_flight = world.spawn(acquire("r", 1));
    world.settle().await;
    let not_appended = world.spawn(acquire("s", 2));
    world.clock.pass(1_500).await;
    assert!(!in_flight.is_finished());
    world.clock.manual.advance(Duration::from_millis(600));
    assert!(matches!(world.running.stopped().await, StopReason::Unresolved(_)));
    assert!(matches!(in_flight.await.unwrap(), Err(SubmitError::OutcomeUnknown(_))));
    let not_appended = not_appended.await.unwrap();
    assert!(not_appended.is_err(), "in doubt or not, depending on who noticed first: {not_appended:?}");
    assert!(matches!(waiter.await.unwrap(), Err(SubmitError::StoreUnavailable(_))));
    assert_eq!(world.handle.submit(show(1)).await, Err(SubmitError::NotActive));
}

#[tokio::test]
async fn a_fenced_node_answers_nothing_and_closes_its_streams() {
    let mut world = World::new().await;
    world.grant("r", 1).await;
    let mut watch = world.handle.watch(tenant(), WatchFrom::Now);
    let second = world.start_another().await.unwrap();
    assert_eq!(
        world.handle.submit(renew(1)).await,
        Err(SubmitError::NotActive),
        "the confirmation finds it out"
    );
    assert_eq!(world.running.stopped().await, StopReason::Fenced);
    assert_eq!(watch.next().await, Err(WatchEnd));
    let reply = second.handle().submit(renew(1)).await.unwrap();
    assert!(matches!(reply.get(), Reply::Renewed(_)));
    assert!(reply.epoch() > world.handle.status().epoch);
}

#[tokio::test]
async fn a_failed_journal_stops_the_node_with_its_reason() {
    let mut world = World::new().await;
    world.journal.fail_next_append(Fault::Failed);
    assert!(matches!(world.handle.submit(acquire("r", 1)).await, Err(SubmitError::OutcomeUnknown(_))));
    assert!(matches!(world.running.stopped().await, StopReason::JournalFailed(_)));
}

#[tokio::test]
async fn without_room_endings_go_on() {
    let world = World::new().await;
    world.grant("r", 1).await;
    world.journal.set_room(Room::Reserve);
    assert_eq!(world.ask(acquire("s", 2)).await, Reply::Refused(Refusal::NoRoom));
    assert!(matches!(world.ask(release(1)).await, Reply::Released { .. }));
    assert!(!world.handle.status().room);
    world.journal.set_room(Room::Plenty);
    world.grant("s", 3).await;
}

#[tokio::test]
async fn batches_stay_within_a_tiny_limit() {
    let journal = MemoryJournal::new();
    journal.set_limits(Limits { body_bytes: 150, chunk_bytes: 200, confirm_is_free: false });
    let world = World::with(journal, |_| {}).await;
    world.journal.set_paused(true);
    let calls: Vec<_> = (1..=40).map(|n| world.spawn(acquire(&format!("r{n}"), n))).collect();
    world.settle().await;
    world.journal.set_paused(false);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert!(world.journal.tail().slot.0 >= 20, "a journal that refuses longer bodies took them all");
    let before = world.leases().await;
    assert_eq!(world.restart().await.leases().await, before);
}
