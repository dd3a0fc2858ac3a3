//! Failing steps and full disks (F5): each write, sync, creation and rename fails once, and nothing acknowledged is
//! lost; a full disk still takes endings.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::{append, append_all, batch, claim, install, is_suffix, now, open, read_all, tiny};
use leasehold_journal::{Chained, Confirmation, Directory, Journal as _, Opened, Outcome, Room, Tail};
use leasehold_journal_wal::disk::{Disk, DiskFile, Fault, LockError, MemoryDisk, Op, Suitability};
use leasehold_journal_wal::{Background, WalConfig, WalJournal};
use leasehold_types::Slot;

/// Opens, appends over several segments, stores a snapshot, appends again. Stops at the first failure. What was
/// acknowledged, and what was in doubt then.
fn script(disk: &MemoryDisk) -> (Vec<Chained>, Option<Chained>, Option<Outcome>) {
    let mut all: Vec<Chained> = Vec::new();
    let Ok(mut opened) = open(disk, &tiny()) else { return (all, None, None) };
    for number in 0..24_u8 {
        let tail = all.last().map_or(Tail::default(), Chained::tail);
        let (outcome, committed) = append(&mut opened, tail, vec![number; 150 * usize::from(number % 7)]);
        if outcome != Outcome::Committed {
            let ops = disk.ops().len();
            if let Outcome::Failed(_) = outcome {
                let again = now(opened.writer.append(&committed));
                assert!(matches!(again, Outcome::Failed(_)), "a failed writer must not try again: {again:?}");
                assert!(matches!(now(opened.writer.beat()), Outcome::Failed(_)));
                assert!(matches!(now(opened.writer.confirm()), Confirmation::Unknown(_)));
                assert_eq!(disk.ops().len(), ops, "a failed writer must not touch the disk");
            }
            return (all, Some(committed), Some(outcome));
        }
        all.push(committed);
        if number == 14 {
            let at = all[11].tail();
            if let Outcome::Failed(reason) = install(&mut opened, at, &[&[3; 900]], Slot(9)) {
                let outcome = Some(Outcome::Failed(reason));
                return (all, None, outcome);
            }
        }
    }
    (all, None, None)
}

fn check(disk: &MemoryDisk, all: &[Chained], in_doubt: Option<&Chained>, what: &str) {
    let mut opened = open(disk, &tiny()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let read = read_all(opened.reader.as_mut());
    let mut expected = all.to_vec();
    if opened.tail.slot > expected.last().map_or(Slot(0), |last| last.slot) {
        expected.push(in_doubt.unwrap_or_else(|| panic!("{what}: more than was written")).clone());
    }
    assert_eq!(opened.tail, expected.last().map_or(Tail::default(), Chained::tail), "{what}");
    assert!(is_suffix(&read, &expected), "{what}");
    let tail = opened.tail;
    append_all(&mut opened, tail, 3, 500);
}

#[test]
fn each_step_fails_once_and_nothing_acknowledged_is_lost() {
    let steps = {
        let disk = MemoryDisk::new();
        let (all, _, failure) = script(&disk);
        assert_eq!((all.len(), failure), (24, None));
        disk.ops()
    };
    let mut failed = 0;
    for (step, op) in steps.iter().enumerate() {
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            let disk = MemoryDisk::new();
            disk.fail(step, Fault::Error(kind));
            let (all, in_doubt, failure) = script(&disk);
            failed += usize::from(matches!(failure, Some(Outcome::Failed(_))));
            let what = format!("step {step} ({op:?}) with {kind:?}");
            check(&disk.process_end(), &all, in_doubt.as_ref(), &format!("{what}, then the process ends"));
            check(
                &disk.power_cut(&mut || false),
                &all,
                in_doubt.as_ref(),
                &format!("{what}, then power is cut"),
            );
            // After a failed sync the page cache shows what the disk does not have. The next opening must not trust it.
            let mut restarted = all.clone();
            let reopened = disk.process_end();
            if let Ok(opened) = open(&reopened, &tiny())
                && opened.tail.slot > all.last().map_or(Slot(0), |last| last.slot)
            {
                restarted.extend(in_doubt);
            }
            check(
                &reopened.power_cut(&mut || false),
                &restarted,
                None,
                &format!("{what}, restart, power cut"),
            );
        }
    }
    assert!(failed >= 50, "only {failed} of the steps stopped the writer");
    assert!(steps.contains(&Op::SyncDir) && steps.contains(&Op::Rename) && steps.contains(&Op::Remove));
}

#[test]
fn a_full_disk_takes_endings_refuses_more_and_recovers() {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk, &tiny()).unwrap();
    assert_eq!(opened.writer.room(), Room::Plenty);
    let mut all = append_all(&mut opened, Tail::default(), 3, 1_000);
    disk.set_capacity(Some(disk.used()));
    while opened.writer.room() == Room::Plenty {
        let tail = all.last().unwrap().tail();
        all.extend(append_all(&mut opened, tail, 1, 1_000));
    }
    let spare_sectors = tiny().segment_bytes / 512 - 1;
    let endings = append_all(&mut opened, all.last().unwrap().tail(), spare_sectors / 3 - 1, 1_000);
    assert!(endings.len() >= 2, "a whole segment was in reserve");
    all.extend(endings);
    let (outcome, refused) = append(&mut opened, all.last().unwrap().tail(), vec![1; 1_500]);
    assert!(matches!(&outcome, Outcome::Unknown(reason) if reason.contains("disk full")), "{outcome:?}");
    assert_eq!(read_all(opened.reader.as_mut()), all, "nothing was written");

    disk.set_capacity(None);
    assert_eq!(now(opened.writer.append(&refused)), Outcome::Committed, "the same batch again");
    assert_eq!(opened.writer.room(), Room::Plenty);
    all.push(refused);
    drop(opened);
    check(&disk.power_cut(&mut || false), &all, None, "after the full disk");
}

#[test]
fn a_snapshot_on_a_full_disk_uses_the_reserve_and_makes_room() {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk, &tiny()).unwrap();
    let mut all = append_all(&mut opened, Tail::default(), 3, 1_000);
    disk.set_capacity(Some(disk.used()));
    while opened.writer.room() == Room::Plenty {
        let tail = all.last().unwrap().tail();
        all.extend(append_all(&mut opened, tail, 1, 1_000));
    }
    let at = all.last().unwrap().tail();
    assert_eq!(install(&mut opened, at, &[&[1; 300]], at.slot.next()), Outcome::Committed);
    let bigger = install(&mut opened, at, &[&[1; 50_000]], at.slot.next());
    assert!(matches!(bigger, Outcome::Unknown(_)), "{bigger:?}");
    assert!(disk.used() <= 20 << 10, "an unfinished snapshot is removed: {} bytes", disk.used());
    disk.set_capacity(Some(disk.used() + (16 << 10)));
    assert_eq!(install(&mut opened, at, &[&[1; 300]], at.slot.next()), Outcome::Committed);
    assert_eq!(opened.writer.room(), Room::Plenty, "there is room again");
    append_all(&mut opened, at, 10, 1_000);
}

/// A disk on which it takes a while to give every second segment its name. Were all of them slow, a keeper that counted one
/// too many would make it while it is waited for, and nobody would notice.
struct SlowRename(MemoryDisk);

impl Disk for SlowRename {
    fn lock(&self) -> Result<Box<dyn Send + Sync>, LockError> {
        self.0.lock()
    }
    fn suitability(&self) -> io::Result<Suitability> {
        self.0.suitability()
    }
    fn identity(&self) -> io::Result<Directory> {
        self.0.identity()
    }
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.0.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.0.open(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if to.starts_with("segment-") && to.ends_with(['1', '3', '5', '7', '9']) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn path(&self, name: &str) -> String {
        self.0.path(name)
    }
}

/// Snapshots wake the keeper all the time, also while a segment has been taken and still has the name of the next one.
#[test]
fn a_keeper_that_wakes_up_while_a_segment_is_taken_does_not_count_it_as_the_next() {
    let config = WalConfig { background: Background::Thread, ..tiny() };
    let journal = WalJournal::on(Arc::new(SlowRename(MemoryDisk::new())), config);
    let Opened { mut writer, mut snapshots, epoch, .. } = now(journal.open(claim())).unwrap();
    let (committed, done) = (Mutex::new(Tail::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let at = *committed.lock().unwrap();
                if at.slot > Slot(0) && now(snapshots.begin(at)).is_ok() {
                    now(snapshots.chunk(b"state".as_slice().into())).unwrap();
                    now(snapshots.install(at.slot));
                }
                std::thread::park_timeout(Duration::from_millis(1));
            }
        });
        let mut tail = Tail::default();
        let outcomes: Vec<Outcome> = (0..60)
            .map(|_| {
                let batch = Chained::new(batch(tail, vec![7; 1_200]), epoch);
                let outcome = now(writer.append(&batch));
                tail = batch.tail();
                *committed.lock().unwrap() = tail;
                outcome
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Committed), "{outcomes:?}");
    });
}
