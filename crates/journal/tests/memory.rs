//! The faults that a test can order from a memory journal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_journal::{
    Batch, BatchId, Chained, Claim, Confirmation, Fault, Journal, MemoryJournal, OpenError, Opened, Outcome,
    Room, Tail,
};
use leasehold_types::{ClusterId, Durability, Epoch, Nonce};

async fn open(journal: &MemoryJournal, number: u8) -> Result<Opened, OpenError> {
    let claim = Claim {
        nonce: Nonce::from_bytes([number; 16]),
        new_cluster: ClusterId::from_bytes([9; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    journal.open(claim).await
}

fn batch(tail: Tail, epoch: Epoch) -> Chained {
    let batch = Batch {
        slot: tail.slot.next(),
        id: BatchId(tail.slot.0.into()),
        prev_hash: tail.hash,
        body: "fact".into(),
    };
    Chained::new(batch, epoch)
}

#[tokio::test]
async fn an_unknown_append_has_happened_or_not_or_happens_late() {
    for (fault, at_once, later) in
        [(Fault::UnknownBefore, 0, 0), (Fault::UnknownAfter, 1, 1), (Fault::UnknownLate, 0, 1)]
    {
        let journal = MemoryJournal::new();
        let mut opened = open(&journal, 1).await.unwrap();
        journal.fail_next_append(fault);
        let outcome = opened.writer.append(&batch(Tail::default(), opened.epoch)).await;
        assert!(matches!(outcome, Outcome::Unknown(_)), "{fault:?}");
        assert_eq!(journal.tail().slot.0, at_once, "{fault:?}");
        let next = open(&journal, 2).await.unwrap();
        assert_eq!(next.tail.slot.0, later, "{fault:?}: opening resolves the slot");
    }
}

#[tokio::test]
async fn the_same_bytes_again_resolve_every_unknown() {
    for fault in [Fault::UnknownBefore, Fault::UnknownAfter, Fault::UnknownLate] {
        let journal = MemoryJournal::new();
        let mut opened = open(&journal, 1).await.unwrap();
        journal.fail_next_append(fault);
        let batch = batch(Tail::default(), opened.epoch);
        assert!(matches!(opened.writer.append(&batch).await, Outcome::Unknown(_)));
        assert_eq!(opened.writer.append(&batch).await, Outcome::Committed, "{fault:?}");
        assert_eq!(journal.tail().slot.0, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_late_append_of_a_replaced_writer_never_lands() {
    let journal = MemoryJournal::new();
    let mut older = open(&journal, 1).await.unwrap();
    let _newer = open(&journal, 2).await.unwrap();
    journal.fail_next_append(Fault::UnknownLate);
    let _ = older.writer.append(&batch(Tail::default(), older.epoch)).await;
    assert_eq!(open(&journal, 3).await.unwrap().tail, Tail::default());
}

#[tokio::test]
async fn a_failed_writer_stays_failed() {
    let journal = MemoryJournal::with_durability(Durability::Durable);
    let mut opened = open(&journal, 1).await.unwrap();
    assert_eq!(opened.durability, Durability::Durable);
    journal.fail_next_append(Fault::Failed);
    for _ in 0..2 {
        assert!(matches!(
            opened.writer.append(&batch(Tail::default(), opened.epoch)).await,
            Outcome::Failed(_)
        ));
    }
    assert_eq!(journal.tail(), Tail::default());
}

#[tokio::test]
async fn while_cut_off_nothing_is_known_and_a_pause_holds_calls_back() {
    let journal = MemoryJournal::new();
    let mut opened = open(&journal, 1).await.unwrap();
    journal.set_room(Room::Reserve);
    assert_eq!(opened.writer.room(), Room::Reserve);
    journal.set_available(false);
    assert!(matches!(opened.writer.append(&batch(Tail::default(), opened.epoch)).await, Outcome::Unknown(_)));
    assert!(matches!(opened.writer.confirm().await, Confirmation::Unknown(_)));
    assert!(matches!(open(&journal, 2).await, Err(OpenError::Unavailable(_))));
    journal.set_available(true);

    journal.set_paused(true);
    let waiting =
        tokio::spawn(async move { opened.writer.append(&batch(Tail::default(), opened.epoch)).await });
    tokio::task::yield_now().await;
    assert_eq!(journal.tail(), Tail::default());
    journal.set_paused(false);
    assert_eq!(waiting.await.unwrap(), Outcome::Committed);
}
