//! The stream of events.

use leasehold_core::EventKind;
use leasehold_journal::MemoryJournal;
use leasehold_node::{EventId, WatchEnd, WatchFrom, WatchItem};
use leasehold_types::{Slot, TenantName};

use super::world::*;

fn id(slot: u64, n: u32) -> EventId {
    EventId { slot: Slot(slot), n }
}

/// Ids of journaled events, in order.
fn ids(items: &[WatchItem]) -> Vec<EventId> {
    items.iter().filter_map(|item| if let WatchItem::Event { id, .. } = item { *id } else { None }).collect()
}

/// Reads until there are this many journaled events.
async fn read(watch: &mut leasehold_node::Watch, events: usize) -> Vec<WatchItem> {
    let mut items = Vec::new();
    while ids(&items).len() < events {
        items.extend(watch.next().await.unwrap());
    }
    items
}

#[tokio::test]
async fn a_watcher_sees_what_happens_in_order() {
    let world = World::new().await;
    let mut watch = world.handle.watch(tenant(), WatchFrom::Now);
    let mut foreign = world.handle.watch(TenantName::new("other").unwrap(), WatchFrom::Now);
    world.grant("r", 1).await;
    world.ask(renew(1)).await;
    world.ask(release(1)).await;
    let items = read(&mut watch, 2).await;
    let kinds: Vec<_> = items
        .iter()
        .map(|item| match item {
            WatchItem::Event { event, .. } => match event.kind {
                EventKind::Granted { .. } => "granted",
                EventKind::Renewed { .. } => "renewed",
                EventKind::Ended { .. } => "ended",
                EventKind::Queued | EventKind::Proclaimed => "other",
            },
            WatchItem::Compacted { .. } => "compacted",
        })
        .collect();
    assert_eq!(kinds, ["granted", "renewed", "ended"]);
    assert_eq!(ids(&items), [id(1, 0), id(2, 0)]);
    world.running.shutdown().await;
    assert_eq!(watch.next().await, Err(WatchEnd));
    assert_eq!(foreign.next().await, Err(WatchEnd), "another tenant sees nothing");
}

#[tokio::test]
async fn a_watcher_resumes_where_it_was_even_after_a_restart() {
    let world = World::new().await;
    for n in 1..=5 {
        world.grant(&format!("r{n}"), n).await;
    }
    let mut watch = world.handle.watch(tenant(), WatchFrom::After(id(2, 0)));
    assert_eq!(ids(&read(&mut watch, 3).await), [id(3, 0), id(4, 0), id(5, 0)]);
    let world = world.restart().await;
    world.grant("r6", 6).await;
    let mut watch = world.handle.watch(tenant(), WatchFrom::After(id(4, 0)));
    // Slot 6 holds the resignation, which is no event.
    assert_eq!(ids(&read(&mut watch, 2).await), [id(5, 0), id(7, 0)]);
}

#[tokio::test]
async fn a_place_that_is_gone_is_said_to_be() {
    let world = World::with(MemoryJournal::new(), |config| config.ring_events = 3).await;
    let mut slow = world.handle.watch(tenant(), WatchFrom::Now);
    for n in 1..=10 {
        world.grant(&format!("r{n}"), n).await;
    }
    let mut late = world.handle.watch(tenant(), WatchFrom::After(id(2, 0)));
    for watch in [&mut slow, &mut late] {
        let items = read(watch, 3).await;
        assert_eq!(items[0], WatchItem::Compacted { oldest: Some(id(8, 0)) });
        assert_eq!(ids(&items), [id(8, 0), id(9, 0), id(10, 0)]);
    }
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let world = World::new().await;
    let mut watch = world.handle.watch(tenant(), WatchFrom::Now);
    tokio::select! {
        biased;
        items = watch.next() => panic!("nothing happened yet: {items:?}"),
        () = tokio::task::yield_now() => {}
    }
    world.grant("r", 1).await;
    assert_eq!(ids(&read(&mut watch, 1).await), [id(1, 0)]);
}

#[tokio::test]
async fn events_are_shown_only_after_their_commit() {
    let world = World::new().await;
    let mut watch = world.handle.watch(tenant(), WatchFrom::Now);
    world.journal.set_paused(true);
    let grant = world.spawn(acquire("r", 1));
    world.settle().await;
    tokio::select! {
        biased;
        items = watch.next() => panic!("it is not durable yet: {items:?}"),
        () = tokio::task::yield_now() => {}
    }
    assert!(world.seen.events.lock().unwrap().is_empty());
    world.journal.set_paused(false);
    grant.await.unwrap().unwrap();
    assert_eq!(ids(&read(&mut watch, 1).await), [id(1, 0)]);
}
