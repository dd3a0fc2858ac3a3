use std::fs;

use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce};

use super::*;
use crate::{Batch, BatchId, Chained, Claim, Journal, MemoryJournal, OpenError, Outcome, Reader, Tail};

/// A journal of `slots` batches, with a snapshot after `at` (none for 0).
async fn journal(slots: u64, at: u64) -> MemoryJournal {
    let journal = MemoryJournal::new();
    let claim = Claim {
        nonce: Nonce::from_bytes([1; 16]),
        new_cluster: ClusterId::from_bytes([2; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(6),
        accept_loss: false,
    };
    let mut opened = journal.open(claim).await.unwrap();
    for slot in 1..=slots {
        let body = Bytes::from(vec![slot.to_le_bytes()[0]; 10 * usize::try_from(slot).unwrap()]);
        let Tail { hash, .. } = journal.tail();
        let batch = Batch { slot: Slot(slot), id: BatchId(u128::from(slot)), prev_hash: hash, body };
        let batch = Chained::new(batch, opened.epoch);
        assert_eq!(opened.writer.append(&batch).await, Outcome::Committed);
        if slot == at {
            opened.snapshots.begin(journal.tail()).await.unwrap();
            opened.snapshots.chunk(Bytes::from_static(b"first chunk")).await.unwrap();
            opened.snapshots.chunk(Bytes::from_static(b"second")).await.unwrap();
            assert_eq!(opened.snapshots.install(Slot(at + 1)).await, Outcome::Committed);
        }
    }
    journal
}

#[tokio::test]
async fn an_archive_holds_what_the_journal_held() {
    let dir = tempfile::tempdir().unwrap();
    for (slots, at) in [(0, 0), (5, 0), (9, 4), (7, 7), (150, 20)] {
        let source = journal(slots, at).await;
        let path = dir.path().join(format!("{slots}-{at}.archive"));
        let written = write_archive(source.reader().await.unwrap().as_mut(), &path).await.unwrap();
        let mut archive = Archive::open(&path).unwrap();
        assert_eq!(archive.summary(), written);
        assert_eq!(written.bytes, fs::metadata(&path).unwrap().len());
        assert_eq!((written.tail, written.snapshot, written.epoch), (source.tail(), Slot(at), Epoch(7)));

        let target = MemoryJournal::new();
        assert_eq!(target.import(&mut archive).await, Ok(source.tail()));
        let (mut one, mut two) = (source.reader().await.unwrap(), target.reader().await.unwrap());
        assert_eq!(one.head().await, two.head().await);
        assert_eq!(one.snapshot().await, two.snapshot().await);
        assert_eq!(one.slots(Slot(at + 1)).await, two.slots(Slot(at + 1)).await);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5, "nothing else is left behind");
}

#[tokio::test]
async fn every_changed_byte_and_every_cut_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    let source = journal(3, 1).await;
    write_archive(source.reader().await.unwrap().as_mut(), &path).await.unwrap();
    let whole = fs::read(&path).unwrap();
    let damaged = dir.path().join("damaged");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(&damaged, &bytes).unwrap();
        assert!(matches!(Archive::open(&damaged), Err(OpenError::Corrupt { .. })), "changed at {at}");
        fs::write(&damaged, &whole[..at]).unwrap();
        assert!(matches!(Archive::open(&damaged), Err(OpenError::Corrupt { .. })), "cut at {at}");
    }
}

#[tokio::test]
async fn an_archive_that_is_there_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    fs::write(&path, "precious").unwrap();
    let source = journal(1, 0).await;
    let error = write_archive(source.reader().await.unwrap().as_mut(), &path).await.unwrap_err();
    assert!(error.to_string().contains("there is a file already"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[tokio::test]
async fn an_archive_reads_from_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    let source = journal(30, 10).await;
    write_archive(source.reader().await.unwrap().as_mut(), &path).await.unwrap();
    let mut archive = Archive::open(&path).unwrap();
    let mut live = source.reader().await.unwrap();
    for from in [30, 11, 25, 12, 31, 10, 1] {
        assert_eq!(archive.slots(Slot(from)).await, live.slots(Slot(from)).await, "from {from}");
    }
}
