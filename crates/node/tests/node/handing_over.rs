//! Waiting, handing over, leaving.

use leasehold_core::Reply;
use leasehold_types::RequestKey;

use super::world::*;

#[tokio::test]
async fn a_release_wakes_the_first_waiter() {
    let world = World::new().await;
    world.grant("r", 1).await;
    let (second, third) = (world.spawn(waiting("r", 2, 60_000)), world.spawn(waiting("r", 3, 60_000)));
    world.settle().await;
    assert_eq!(world.handle.status().counts.waiters, 2);
    world.ask(release(1)).await;
    assert_eq!(token(second.await.unwrap().unwrap().get()), 2);
    assert!(!third.is_finished());
    world.ask(release(2)).await;
    assert_eq!(token(third.await.unwrap().unwrap().get()), 3);
}

#[tokio::test]
async fn a_waiter_that_leaves_is_withdrawn() {
    let world = World::new().await;
    world.grant("r", 1).await;
    let (leaving, staying) = (world.spawn(waiting("r", 2, 60_000)), world.spawn(waiting("r", 3, 60_000)));
    world.settle().await;
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    world.settle().await;
    assert_eq!(world.handle.status().counts.waiters, 1);
    world.ask(release(1)).await;
    assert_eq!(token(staying.await.unwrap().unwrap().get()), 2, "nothing was granted to the one that left");
}

#[tokio::test]
async fn a_grant_that_meets_nobody_is_given_back() {
    let world = World::new().await;
    world.journal.set_paused(true);
    let unheard = world.spawn(acquire("a", 1));
    let chosen = world.spawn(acquire_with("b", |acquire| {
        acquire.lease_id = lease_id(2);
        acquire.lease_id_chosen = true;
    }));
    let mut keyed = acquire("c", 3);
    keyed.key = Some(RequestKey::new("key").unwrap());
    let keyed = world.spawn(keyed);
    world.settle().await;
    for call in [unheard, chosen, keyed] {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    world.journal.set_paused(false);
    until(&world.seen.given_back, 1).await;
    let held: Vec<_> = world.leases().await.into_iter().map(|(resource, _)| resource).collect();
    assert_eq!(held, ["b", "c"], "these can be asked for again");
}

#[tokio::test]
async fn a_waiter_that_leaves_while_its_grant_is_in_flight_gives_it_back() {
    let world = World::new().await;
    world.grant("r", 1).await;
    let waiter = world.spawn(waiting("r", 2, 60_000));
    world.settle().await;
    world.journal.set_paused(true);
    let release = world.spawn(release(1));
    world.settle().await;
    waiter.abort();
    world.settle().await;
    world.journal.set_paused(false);
    release.await.unwrap().unwrap();
    until(&world.seen.given_back, 1).await;
    assert_eq!(world.leases().await, []);
}

#[tokio::test]
async fn many_waiters_are_served_in_order() {
    let world = World::new().await;
    world.grant("r", 255).await;
    let mut waiters = Vec::new();
    for n in 0..100 {
        waiters.push(world.spawn(waiting("r", n, 600_000)));
        tokio::task::yield_now().await;
    }
    world.settle().await;
    let mut holder = 255;
    for (n, waiter) in (0u8..).zip(waiters) {
        assert!(matches!(world.ask(release(holder)).await, Reply::Released { .. }));
        assert_eq!(token(waiter.await.unwrap().unwrap().get()), u64::from(n) + 2);
        holder = n;
    }
}
