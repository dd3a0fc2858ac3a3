//! Shutting down, starting again, snapshots, recovery.

use std::time::Duration;

use leasehold_core::{Fact, Operator, Reply, codec};
use leasehold_journal::{Journal, Limits, MemoryJournal, OpenError, Slots, Witness};
use leasehold_node::{Clock, Role, StartError, StopReason, SubmitError, maintenance};
use leasehold_types::{Slot, limits};

use super::world::*;

async fn last_fact(journal: &MemoryJournal) -> Option<Fact> {
    let mut reader = journal.reader().await.unwrap();
    match reader.slots(journal.tail().slot).await.unwrap() {
        Slots::Found(found) => codec::decode_body(&found.last()?.body).unwrap().pop(),
        Slots::Compacted { .. } => None,
    }
}

#[tokio::test]
async fn a_restarted_node_knows_everything_and_its_tokens_grow() {
    let world = World::new().await;
    for n in 1..=10 {
        world.grant(&format!("r{n}"), n).await;
    }
    world.ask(release(3)).await;
    let before = world.leases().await;
    let world = world.restart().await;
    assert_eq!(world.leases().await, before);
    assert_eq!(world.grant("new", 11).await, 11);
    assert_eq!(world.handle.status().role, Role::Active);
}

#[tokio::test]
async fn a_killed_node_loses_nothing_that_was_told() {
    let mut world = World::new().await;
    world.grant("r", 1).await;
    let second = world.start_another().await.unwrap();
    let reply = second.handle().submit(acquire("s", 2)).await.unwrap().into_inner();
    assert_eq!(token(&reply), 2);
    assert!(matches!(second.handle().submit(release(1)).await.unwrap().get(), Reply::Released { .. }));
    world.handle.submit(show(1)).await.unwrap_err();
    assert_eq!(world.running.stopped().await, StopReason::Fenced);
}

#[tokio::test]
async fn a_shutdown_finishes_what_was_taken_and_resigns() {
    let world = World::new().await;
    world.grant("held", 9).await;
    let waiter = world.spawn(waiting("held", 1, 60_000));
    world.journal.set_paused(true);
    let taken = world.spawn(acquire("r", 2));
    world.settle().await;
    let World { running, journal, handle, clock, .. } = world;
    let shutdown = tokio::spawn(running.shutdown());
    clock.pass(200).await;
    assert_eq!(handle.submit(renew(9)).await, Err(SubmitError::ShuttingDown));
    assert!(!taken.is_finished() && !shutdown.is_finished());
    journal.set_paused(false);
    assert_eq!(shutdown.await.unwrap(), StopReason::Shutdown);
    assert!(matches!(taken.await.unwrap().unwrap().get(), Reply::Granted(_)));
    assert_eq!(waiter.await.unwrap(), Err(SubmitError::ShuttingDown));
    assert_eq!(last_fact(&journal).await, Some(Fact::Resigned));
    assert_eq!(handle.submit(renew(9)).await, Err(SubmitError::NotActive));
}

#[tokio::test]
async fn snapshots_truncate_the_journal_and_lose_nothing() {
    // Fifty chunks and more, none of which may be longer than the journal takes.
    let journal = MemoryJournal::new();
    journal.set_limits(Limits { chunk_bytes: 200, ..Limits::REMOTE });
    let world = World::with(journal, |config| {
        config.snapshot_bytes = 4_000;
        config.resume_bytes = 500;
    })
    .await;
    for n in 1..=200 {
        world.grant(&format!("r{n}"), n).await;
        if n % 2 == 0 {
            world.ask(release(n)).await;
        }
    }
    until(&world.seen.snapshots, 1).await;
    let mut reader = world.journal.reader().await.unwrap();
    let snapshot = reader.snapshot().await.unwrap().expect("one was installed");
    assert!(matches!(reader.slots(Slot(1)).await, Ok(Slots::Compacted { .. })));
    assert!(snapshot.at.slot < world.journal.tail().slot, "some slots stay for watchers that resume");
    assert!(snapshot.chunks > 10, "{snapshot:?}");
    let before = world.leases().await;
    assert_eq!(before.len(), 100);
    let world = world.restart().await;
    assert_eq!(world.leases().await, before);
    assert_eq!(world.grant("new", 250).await, 201);
    assert_eq!(*world.seen.troubles.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_crash_loop_left_to_replay_is_a_snapshot_before_anything_is_served() {
    let mut world = World::with(MemoryJournal::new(), |config| config.resume_bytes = 500).await;
    // More than is written, so that none is due otherwise; an eighth of it is less.
    world.config.snapshot_bytes = 12_000;
    let snapshot = async |journal: &MemoryJournal| {
        let mut reader = journal.reader().await.unwrap();
        reader.snapshot().await.unwrap().map(|found| found.at.slot)
    };
    for n in 1..=60 {
        world.grant(&format!("r{n}"), n).await;
    }
    let before = world.leases().await;
    // Each life appends that it resigns, and no more.
    for _ in 2..=4 {
        world = world.restart().await;
        assert_eq!(
            snapshot(&world.journal).await,
            None,
            "a node that is started again now and then serves at once"
        );
    }
    let world = world.restart().await;
    let slot = snapshot(&world.journal).await.expect("it was made before the start ended");
    assert!(slot < world.journal.tail().slot, "some slots stay for watchers that resume");
    assert_eq!(world.leases().await, before);
    assert_eq!(*world.seen.troubles.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_journal_that_lost_writes_is_refused_until_it_is_recovered() {
    let world = World::new().await;
    for n in 1..=5 {
        world.grant(&format!("r{n}"), n).await;
    }
    let world = world.restart().await;
    let World { journal, config, clock, seen, .. } = &world;
    journal.lose_after(Slot(2));
    let refused = world.start_another().await.unwrap_err();
    assert!(matches!(&refused, StartError::Open(OpenError::Regressed(_))), "{refused}");

    let operator = Operator { actor: "op".into(), reason: "the disk was replaced".into() };
    let clock: &dyn Clock = &**clock;
    let recovered = maintenance::recover(journal, &config.data_dir, operator, None, clock).await.unwrap();
    assert_eq!(recovered.token_floor, 5 + limits::RECOVERY_STEP, "the witness had seen token 5");
    assert!(recovered.epoch.0 > limits::RECOVERY_STEP);
    let running = world.start_another().await.unwrap();
    let reply = running.handle().submit(acquire("new", 9)).await.unwrap();
    assert_eq!(token(reply.get()), recovered.token_floor + 1);
    assert_eq!(running.handle().status().generation, recovered.generation);
    assert!(seen.troubles.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_asked_for_token_floor_is_used_if_it_is_higher() {
    let world = World::new().await;
    world.grant("r", 1).await;
    let operator = Operator { actor: "op".into(), reason: "restored".into() };
    let floor = Some(1 << 45);
    let clock: &dyn Clock = &*world.clock;
    let recovered =
        maintenance::recover(&world.journal, &world.config.data_dir, operator, floor, clock).await.unwrap();
    assert_eq!(recovered.token_floor, 1 << 45);
}

#[tokio::test]
async fn a_journal_that_is_recovered_before_its_first_fact_has_the_newest_format() {
    let world = World::new().await;
    assert_eq!(world.journal.tail().slot, Slot(0));
    let operator = Operator { actor: "op".into(), reason: "restored".into() };
    let clock: &dyn Clock = &*world.clock;
    maintenance::recover(&world.journal, &world.config.data_dir, operator, None, clock).await.unwrap();
    let next = world.start_another().await.unwrap();
    assert_eq!(next.handle().status().format, codec::FORMAT);
}

#[tokio::test]
async fn the_witness_is_written_while_the_node_serves() {
    let world = World::new().await;
    let path = world.config.data_dir.join("witness");
    assert_eq!(Witness::load(&path).unwrap().expect("written at the opening").tail.slot, Slot(0));
    world.grant("r", 1).await;
    let written = async {
        // Each second brings one; the thread that writes it is beside the loop.
        while Witness::load(&path).unwrap().is_none_or(|witness| witness.tail.slot < Slot(1)) {
            world.clock.pass(1_000).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written).await.expect("it is written within seconds");
    let witness = Witness::load(&path).unwrap().expect("it was just there");
    assert_eq!(witness.token.map(|token| token.get()), Some(1));
    assert!(witness.tail.slot <= world.journal.tail().slot, "never ahead of what is durable");
}
