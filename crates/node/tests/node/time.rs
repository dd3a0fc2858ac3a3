//! Deadlines, pauses, suspensions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leasehold_core::{Refusal, Reply};
use leasehold_node::{Clock as _, StopReason};
use leasehold_types::EndReason;

use super::world::*;

#[tokio::test]
async fn a_lease_ends_by_time_and_not_before() {
    let world = World::new().await;
    world.grant("r", 1).await;
    world.clock.pass(10_000).await;
    assert!(
        matches!(world.ask(show(1)).await, Reply::Lease(_)),
        "the drift that clocks may have is waited too"
    );
    world.clock.pass(200).await;
    let gone = world.ask(renew(1)).await;
    assert!(
        matches!(gone, Reply::Refused(Refusal::LeaseNotHeld { reason: EndReason::Expired, .. })),
        "{gone:?}"
    );
    assert_eq!(world.grant("r", 2).await, 2);
}

/// Deciding takes time, and what comes meanwhile is taken in the same round.
#[tokio::test]
async fn a_deadline_counts_from_after_the_command_came() {
    let world = World::new().await;
    world.clock.stride.store(1, Ordering::Relaxed);
    let calls: Vec<_> = (0..3_000)
        .map(|n| {
            let (handle, clock) = (world.handle.clone(), Arc::clone(&world.clock));
            tokio::spawn(async move {
                let came = clock.manual.read().wall;
                (came, handle.submit(acquire_with(&format!("r{n}"), |_| {})).await.unwrap().into_inner())
            })
        })
        .collect();
    for call in calls {
        let (came, Reply::Granted(grant)) = call.await.unwrap() else { panic!("it is free") };
        assert!(grant.created_at >= came, "{} was decided as of before it came", grant.resource);
    }
}

#[tokio::test]
async fn a_renewed_lease_lives_on() {
    let world = World::new().await;
    world.grant("r", 1).await;
    for _ in 0..5 {
        world.clock.pass(9_000).await;
        assert!(matches!(world.ask(renew(1)).await, Reply::Renewed(_)));
    }
}

#[tokio::test]
async fn a_pause_moves_every_deadline() {
    let world = World::new().await;
    world.grant("r", 1).await;
    world.clock.pass(9_000).await;
    world.clock.manual.advance(Duration::from_secs(3_600));
    assert!(matches!(world.ask(renew(1)).await, Reply::Renewed(_)), "nobody could renew meanwhile");
    world.clock.pass(10_400).await;
    assert!(matches!(world.ask(renew(1)).await, Reply::Refused(_)), "but a pause makes nothing immortal");
}

#[tokio::test]
async fn a_suspended_machine_confirms_before_it_answers() {
    let mut world = World::new().await;
    world.grant("r", 1).await;
    let _usurper = world.start_another().await.unwrap();
    world.clock.manual.suspend(Duration::from_secs(3_600));
    world.clock.pass(100).await;
    let reason = world.running.stopped().await;
    assert_eq!(reason, StopReason::Fenced, "it looked without being asked anything");
}

/// It ends nothing any more, and once woke up for it again and again until its last append was through.
#[tokio::test]
async fn a_node_that_resigns_is_not_kept_awake_by_what_is_due() {
    let world = World::new().await;
    world.grant("r", 1).await;
    world.clock.pass(10_000).await;
    world.journal.set_paused(true);
    let World { running, clock, journal, .. } = world;
    let stopped = tokio::spawn(running.shutdown());
    // For the loop to hear of it; should it not, there is nothing to be seen here.
    tokio::time::sleep(Duration::from_millis(100)).await;
    clock.manual.advance(Duration::from_millis(200));
    let before = clock.alarms.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let alarms = clock.alarms.load(Ordering::Relaxed) - before;
    assert!(alarms < 20, "time stood still, and the loop has set its alarm {alarms} times");
    journal.set_paused(false);
    assert_eq!(stopped.await.unwrap(), StopReason::Shutdown);
}
