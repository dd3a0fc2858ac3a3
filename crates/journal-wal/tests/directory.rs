//! The embedded journal on a real directory, with its thread: what only a file system can show.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kit::{append, append_all, claim, install, now, read_all, recovering};
use leasehold_journal::archive::{Archive, write_archive};
use leasehold_journal::{Chained, Journal, OpenError, Opened, Outcome, Room, Tail};
use leasehold_journal_wal::disk::MemoryDisk;
use leasehold_journal_wal::{Background, WalConfig, WalJournal};
use leasehold_types::Slot;

fn config(dir: &Path) -> WalConfig {
    WalConfig {
        segment_bytes: 64 << 10,
        first_segment_bytes: 32 << 10,
        reserve_bytes: 16 << 10,
        body_bytes: 8 << 10,
        ..WalConfig::new(dir)
    }
}

fn at(dir: &Path) -> WalJournal {
    WalJournal::new(config(dir))
}

fn open(journal: &WalJournal) -> Opened {
    now(journal.open(claim())).unwrap()
}

#[test]
fn many_segments_are_made_and_deleted_by_the_thread() {
    let dir = tempfile::tempdir().unwrap();
    let journal = at(dir.path());
    let mut opened = open(&journal);
    let mut all = append_all(&mut opened, Tail::default(), 200, 3_000);
    assert!(fs::metadata(dir.path().join("segment-0000000005")).is_ok());
    let tail = all.last().unwrap().tail();
    assert_eq!(install(&mut opened, tail, &[b"state"], Slot(150)), Outcome::Committed);
    all.extend(append_all(&mut opened, tail, 60, 3_000));
    assert_eq!(read_all(opened.reader.as_mut()), all[149..]);
    drop(opened); // waits for the thread
    assert!(fs::metadata(dir.path().join("segment-0000000001")).is_err(), "truncated segments are deleted");
    let mut opened = open(&journal);
    assert_eq!(opened.tail, all.last().unwrap().tail());
    assert_eq!(read_all(opened.reader.as_mut()), all[149..]);
}

#[test]
fn a_second_claim_names_the_process_that_has_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(&at(dir.path()));
    match now(at(dir.path()).open(claim())) {
        Err(OpenError::InUse(message)) => {
            assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        }
        other => panic!("{other:?}"),
    }
    drop(first);
    drop(open(&at(dir.path())));
}

#[test]
fn a_directory_copied_back_is_refused_until_recover() {
    let dir = tempfile::tempdir().unwrap();
    let (live, backup) = (dir.path().join("live"), dir.path().join("backup"));
    let mut opened = open(&at(&live));
    let first = append_all(&mut opened, Tail::default(), 5, 100);
    drop(opened);
    copy_dir(&live, &backup);
    let mut opened = open(&at(&live));
    append_all(&mut opened, first[4].tail(), 5, 100);
    drop(opened);

    // Once as a new directory, once file by file into the old one.
    fs::remove_dir_all(&live).unwrap();
    copy_dir(&backup, &live);
    assert!(matches!(now(at(&live).open(claim())), Err(OpenError::Regressed(_))));
    let mut opened = now(at(&live).open(recovering())).unwrap();
    assert!(opened.loss.as_ref().unwrap().contains("copy"), "{:?}", opened.loss);
    append_all(&mut opened, first[4].tail(), 1, 100);
    drop(opened);
    drop(open(&at(&live)));
    for entry in fs::read_dir(&backup).unwrap() {
        let entry = entry.unwrap();
        fs::remove_file(live.join(entry.file_name())).unwrap();
        fs::copy(entry.path(), live.join(entry.file_name())).unwrap();
    }
    assert!(matches!(now(at(&live).open(claim())), Err(OpenError::Regressed(_))));
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_reader_from_outside_sees_everything_committed_beside_a_live_writer() {
    let dir = tempfile::tempdir().unwrap();
    let outside = at(dir.path());
    assert!(matches!(now(outside.reader()), Err(OpenError::Unavailable(_))), "no journal yet");
    let mut opened = open(&at(dir.path()));
    let mut reader = now(outside.reader()).unwrap();
    let mut all = Vec::new();
    for count in [1, 0, 1, 40] {
        let tail = all.last().map_or(Tail::default(), Chained::tail);
        all.extend(append_all(&mut opened, tail, count, 2_000));
        assert_eq!(read_all(reader.as_mut()), all);
        assert_eq!(now(reader.head()).unwrap().tail, all.last().unwrap().tail());
    }
    drop(opened);
    assert_eq!(read_all(reader.as_mut()), all);
}

#[test]
fn a_backup_beside_a_live_writer_is_restored_into_an_empty_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new, file) = (dir.path().join("old"), dir.path().join("new"), dir.path().join("backup"));
    let mut opened = open(&at(&old));
    let mut all = append_all(&mut opened, Tail::default(), 50, 1_000);
    assert_eq!(install(&mut opened, all[29].tail(), &[b"state", b"of it"], Slot(20)), Outcome::Committed);
    all.extend(append_all(&mut opened, all[49].tail(), 30, 1_000));
    let mut reader = now(at(&old).reader()).unwrap();
    let summary = now(write_archive(reader.as_mut(), &file)).unwrap();
    assert_eq!((summary.tail, summary.snapshot), (all[79].tail(), Slot(30)));

    let restored = at(&new);
    assert_eq!(now(restored.import(&mut Archive::open(&file).unwrap())), Ok(summary.tail));
    assert!(
        matches!(now(restored.open(claim())), Err(OpenError::Regressed(_))),
        "restored, not yet recovered"
    );
    let mut copy = now(restored.open(recovering())).unwrap();
    assert_eq!((copy.cluster, copy.tail), (opened.cluster, summary.tail));
    assert_eq!(read_all(copy.reader.as_mut()), all[30..80]);
    let (outcome, _) = append(&mut copy, summary.tail, vec![1; 100]);
    assert_eq!(outcome, Outcome::Committed);
}

#[test]
fn the_thread_notices_a_full_disk_and_that_there_is_room_again() {
    let disk = MemoryDisk::new();
    let dir = Path::new("unused");
    let config = WalConfig { background: Background::Thread, ..config(dir) };
    let journal = WalJournal::on(Arc::new(disk.clone()), config);
    let mut opened = open(&journal);
    let mut tail = Tail::default();
    let grow = |opened: &mut Opened, tail: &mut Tail| {
        let (outcome, committed) = append(opened, *tail, vec![5; 8_000]);
        if outcome == Outcome::Committed {
            *tail = committed.tail();
        }
        outcome
    };
    // The spare is taken when the first segment is full, so that both are certainly there afterwards.
    while disk.contents("segment-0000000002").is_none() {
        assert_eq!(grow(&mut opened, &mut tail), Outcome::Committed);
    }
    disk.set_capacity(Some(disk.used()));
    let full = loop {
        match grow(&mut opened, &mut tail) {
            Outcome::Committed => {}
            Outcome::Unknown(reason) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(full.contains("disk full"), "{full}");
    assert_eq!(opened.writer.room(), Room::Reserve);
    disk.set_capacity(None);
    assert_eq!(
        grow(&mut opened, &mut tail),
        Outcome::Committed,
        "the same batch again makes the thread try again"
    );
    while opened.writer.room() == Room::Reserve {
        std::thread::yield_now(); // it has only just made the segment
    }
}
