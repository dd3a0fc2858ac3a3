//! The note of a backup in a journal that no node serves.

use std::path::Path;

use leasehold_core::{AuditAction, AuditEntry, Command, Operator, Query, Reply};
use leasehold_journal::{MemoryJournal, OpenError};
use leasehold_node::maintenance::{BackupNote, note_backup};
use leasehold_node::{Clock, Running, StartError, StopReason};
use leasehold_types::Slot;

use super::world::*;

async fn noted(world: &World, data_dir: &Path) -> Result<BackupNote, StartError> {
    let operator = Operator { actor: "ada".into(), reason: "nightly".into() };
    let clock: &dyn Clock = &*world.clock;
    note_backup(&world.journal, data_dir, operator, clock).await
}

async fn audit(running: &Running) -> Vec<AuditEntry> {
    let query = Query::Audit { resource: None, after: 0, page_size: 10 };
    match running.handle().submit(call(Command::Query(query))).await.unwrap().into_inner() {
        Reply::Audit { entries, .. } => entries,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_backup_is_noted_and_the_next_node_goes_on_with_its_tokens() {
    let mut world = World::new().await;
    world.grant("kept", 1).await;
    let data_dir = world.config.data_dir.clone();
    assert_eq!(noted(&world, &data_dir).await.unwrap(), BackupNote::Noted { audit_seq: 1 });
    world.handle.submit(show(1)).await.unwrap_err();
    assert_eq!(world.running.stopped().await, StopReason::Fenced, "the journal was claimed");

    let next = world.start_another().await.unwrap();
    let entries = audit(&next).await;
    assert_eq!(entries.len(), 1);
    let AuditEntry { action, tenant, resource, actor, identity, tokens, .. } = &entries[0];
    assert_eq!((*action, &**tenant, resource, &**actor), (AuditAction::Backup, "", &None, "ada"));
    assert!(identity.is_none() && tokens.is_empty());
    let reply = next.handle().submit(acquire("new", 2)).await.unwrap();
    assert_eq!((token(reply.get()), next.handle().status().generation.0), (2, 1), "nothing was raised");
    assert!(world.seen.troubles.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_machine_that_never_saw_the_journal_can_note_a_backup_too() {
    let world = World::new().await;
    world.grant("kept", 1).await;
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(noted(&world, elsewhere.path()).await.unwrap(), BackupNote::Noted { audit_seq: 1 });
    // Both data directories are as good as before: that of the node, and the new one.
    world.start_another().await.unwrap();
    assert_eq!(noted(&world, elsewhere.path()).await.unwrap(), BackupNote::Noted { audit_seq: 2 });
    assert_eq!(audit(&world.start_another().await.unwrap()).await.len(), 2);
}

#[tokio::test]
async fn a_journal_that_lost_writes_is_refused_and_not_written_to() {
    let world = World::new().await;
    for n in 1..=5 {
        world.grant(&format!("r{n}"), n).await;
    }
    let world = world.restart().await;
    world.journal.lose_after(Slot(2));
    let refused = noted(&world, &world.config.data_dir).await.unwrap_err();
    assert!(matches!(&refused, StartError::Open(OpenError::Regressed(_))), "{refused}");
    assert_eq!(world.journal.tail().slot, Slot(2));
}

#[tokio::test]
async fn a_journal_of_an_older_format_cannot_hold_the_note_and_is_served_as_before() {
    let world = World::with(MemoryJournal::new(), |config| config.known_format = 2).await;
    world.grant("kept", 1).await;
    let note = noted(&world, &world.config.data_dir).await.unwrap();
    assert_eq!(note, BackupNote::FormatTooOld { format: 2 });
    let next = world.start_another().await.unwrap();
    assert_eq!(audit(&next).await, []);
    assert_eq!(next.handle().status().format, 2);
}
