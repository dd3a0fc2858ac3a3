//! Failing steps and full disks (F5): each write, sync, creation and rename fails once, and nothing acknowledged is
//! lost; a full disk still takes endings.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::io::ErrorKind;

use kit::{append, append_all, install, is_suffix, now, open, read_all, tail_of, tiny};
use leasehold_journal::{Committed, Confirmation, Outcome, Room, Tail};
use leasehold_journal_wal::disk::{Fault, MemoryDisk, Op};
use leasehold_types::Slot;

/// Opens, appends over several segments, stores a snapshot, appends again. Stops at the first failure. What was
/// acknowledged, and what was in doubt then.
fn script(disk: &MemoryDisk) -> (Vec<Committed>, Option<Committed>, Option<Outcome>) {
    let mut all: Vec<Committed> = Vec::new();
    let Ok(mut opened) = open(disk, &tiny()) else { return (all, None, None) };
    for number in 0..24_u8 {
        let tail = all.last().map_or(Tail::default(), tail_of);
        let (outcome, committed) = append(&mut opened, tail, vec![number; 150 * usize::from(number % 7)]);
        if outcome != Outcome::Committed {
            let ops = disk.ops().len();
            if let Outcome::Failed(_) = outcome {
                let again = now(opened.writer.append(&committed.batch));
                assert!(matches!(again, Outcome::Failed(_)), "a failed writer must not try again: {again:?}");
                assert!(matches!(now(opened.writer.beat()), Outcome::Failed(_)));
                assert!(matches!(now(opened.writer.confirm()), Confirmation::Unknown(_)));
                assert_eq!(disk.ops().len(), ops, "a failed writer must not touch the disk");
            }
            return (all, Some(committed), Some(outcome));
        }
        all.push(committed);
        if number == 14 {
            let at = tail_of(&all[11]);
            if let Outcome::Failed(reason) = install(&mut opened, at, &[&[3; 900]], Slot(9)) {
                let outcome = Some(Outcome::Failed(reason));
                return (all, None, outcome);
            }
        }
    }
    (all, None, None)
}

fn check(disk: &MemoryDisk, all: &[Committed], in_doubt: Option<&Committed>, what: &str) {
    let mut opened = open(disk, &tiny()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let read = read_all(opened.reader.as_mut());
    let mut expected = all.to_vec();
    if opened.tail.slot > expected.last().map_or(Slot(0), |last| last.batch.slot) {
        expected.push(in_doubt.unwrap_or_else(|| panic!("{what}: more than was written")).clone());
    }
    assert_eq!(opened.tail, expected.last().map_or(Tail::default(), tail_of), "{what}");
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
                && opened.tail.slot > all.last().map_or(Slot(0), |last| last.batch.slot)
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
        let tail = tail_of(all.last().unwrap());
        all.extend(append_all(&mut opened, tail, 1, 1_000));
    }
    let spare_sectors = tiny().segment_bytes / 512 - 1;
    let endings = append_all(&mut opened, tail_of(all.last().unwrap()), spare_sectors / 3 - 1, 1_000);
    assert!(endings.len() >= 2, "a whole segment was in reserve");
    all.extend(endings);
    let (outcome, refused) = append(&mut opened, tail_of(all.last().unwrap()), vec![1; 1_500]);
    assert!(matches!(&outcome, Outcome::Unknown(reason) if reason.contains("disk full")), "{outcome:?}");
    assert_eq!(read_all(opened.reader.as_mut()), all, "nothing was written");

    disk.set_capacity(None);
    assert_eq!(now(opened.writer.append(&refused.batch)), Outcome::Committed, "the same batch again");
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
        let tail = tail_of(all.last().unwrap());
        all.extend(append_all(&mut opened, tail, 1, 1_000));
    }
    let at = tail_of(all.last().unwrap());
    assert_eq!(install(&mut opened, at, &[&[1; 300]], at.slot.next()), Outcome::Committed);
    let bigger = install(&mut opened, at, &[&[1; 50_000]], at.slot.next());
    assert!(matches!(bigger, Outcome::Unknown(_)), "{bigger:?}");
    assert!(disk.used() <= 20 << 10, "an unfinished snapshot is removed: {} bytes", disk.used());
    disk.set_capacity(Some(disk.used() + (16 << 10)));
    assert_eq!(install(&mut opened, at, &[&[1; 300]], at.slot.next()), Outcome::Committed);
    assert_eq!(opened.writer.room(), Room::Plenty, "there is room again");
    append_all(&mut opened, at, 10, 1_000);
}
