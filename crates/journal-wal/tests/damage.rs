//! Damage is never mistaken for an unfinished write (J12): every changed byte, every lost sector and file of what was
//! acknowledged is refused with its place, and `recover` keeps the longest whole prefix.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use kit::{append_all, claim, install, is_suffix, journal, now, open, read_all, recovering, tiny};
use leasehold_journal::{
    Chained, Claim, ImportError, Journal, MemoryJournal, OpenError, Opened, Outcome, Tail,
};
use leasehold_journal_wal::disk::{Disk, Fault, MemoryDisk, Suitability};
use leasehold_types::{Durability, Slot};

const SECTOR: usize = 512;

/// A closed journal of several segments, with a snapshot in the middle if asked for.
fn written(snapshot: bool) -> (MemoryDisk, Vec<Chained>) {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk, &tiny()).unwrap();
    let mut all = append_all(&mut opened, Tail::default(), 8, 300);
    all.extend(append_all(&mut opened, all[7].tail(), 3, 1_200));
    if snapshot {
        let at = all[8].tail();
        assert_eq!(install(&mut opened, at, &[b"one", b"two"], Slot(8)), Outcome::Committed);
    }
    all.extend(append_all(&mut opened, all[10].tail(), 5, 700));
    drop(opened);
    (disk.process_end(), all)
}

fn segments(disk: &MemoryDisk) -> Vec<String> {
    disk.names().unwrap().into_iter().filter(|name| name.starts_with("segment-")).collect()
}

fn refusal(disk: &MemoryDisk) -> (String, String) {
    match open(disk, &tiny()) {
        Err(OpenError::Corrupt { place, detail }) => (place, detail),
        other => panic!("expected damage, not {other:?}"),
    }
}

/// Opens as `recover` does. Until a batch is committed, nobody else may open the journal.
fn recover(disk: &MemoryDisk) -> Opened {
    let opened = now(journal(disk, &tiny()).open(recovering())).unwrap();
    assert!(opened.loss.is_some(), "what was lost must be told");
    drop(opened);
    assert!(matches!(open(disk, &tiny()), Err(OpenError::Regressed(_))), "interrupted is not recovered");
    now(journal(disk, &tiny()).open(recovering())).unwrap()
}

#[test]
fn every_changed_byte_of_every_segment_is_refused_with_its_place() {
    for snapshot in [false, true] {
        let (whole, _) = written(snapshot);
        assert!(segments(&whole).len() >= 2);
        for name in segments(&whole) {
            for at in 0..whole.contents(&name).unwrap().len() {
                let disk = whole.process_end();
                disk.flip(&name, at, 1 << (at % 8));
                let (place, _) = refusal(&disk);
                assert_eq!(place, format!("{name} at byte {}", at / SECTOR * SECTOR), "byte {at}");
            }
        }
    }
}

#[test]
fn every_changed_byte_of_snapshot_and_identity_is_refused_with_its_file() {
    let (whole, _) = written(true);
    for name in ["snapshot", "identity"] {
        for at in 0..whole.contents(name).unwrap().len() {
            let disk = whole.process_end();
            disk.flip(name, at, 1 << (at % 8));
            let (place, _) = refusal(&disk);
            let offset = place.strip_prefix(name).expect("the file is named");
            let named = offset.strip_prefix(" at byte ").map_or(0, |offset| offset.parse().unwrap());
            assert!(named <= at, "{place} for byte {at}");
        }
    }
}

#[test]
fn a_lost_sector_of_an_acknowledged_batch_is_refused() {
    let (whole, all) = written(false);
    let names = segments(&whole);
    let mut refused = 0;
    for name in &names {
        let bytes = whole.contents(name).unwrap();
        for sector in (0..bytes.len() / SECTOR).filter(|s| bytes[s * SECTOR..][..SECTOR] != [0; SECTOR]) {
            let disk = whole.process_end();
            disk.open(name).unwrap().write_at((sector * SECTOR) as u64, &[0; SECTOR]).unwrap();
            match open(&disk, &tiny()) {
                Err(OpenError::Corrupt { place, .. }) => {
                    assert!(place.starts_with(name.as_str()), "{place}");
                    refused += 1;
                }
                // Zero sectors at the very end are what an unfinished write leaves; only the witness knows better.
                Ok(opened) => assert_eq!(opened.tail, all[all.len() - 2].tail()),
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 10);
}

#[test]
fn cut_and_missing_files_are_refused() {
    let (whole, _) = written(false);
    let names = segments(&whole);
    for name in &names {
        let disk = whole.process_end();
        disk.cut_off(name, 3 * SECTOR + 100);
        assert_eq!(refusal(&disk).0, format!("{name} at byte {}", 3 * SECTOR));
    }
    for name in &names[..names.len() - 1] {
        let disk = whole.process_end();
        disk.remove(name).unwrap();
        let (place, detail) = refusal(&disk);
        assert!(detail.contains("missing") && place.starts_with("segment-"), "{place}: {detail}");
    }
    let disk = whole.process_end();
    disk.remove("identity").unwrap();
    assert_eq!(refusal(&disk).0, "identity");
}

#[test]
fn recover_keeps_the_longest_whole_prefix_whatever_byte_is_changed() {
    for snapshot in [false, true] {
        let (whole, all) = written(snapshot);
        let covered = if snapshot { 9 } else { 0 };
        for name in segments(&whole) {
            for at in (0..whole.contents(&name).unwrap().len()).step_by(97) {
                let disk = whole.process_end();
                disk.flip(&name, at, 0x10);
                let mut opened = recover(&disk);
                let kept = usize::try_from(opened.tail.slot.0).unwrap();
                assert!(kept >= covered && kept <= all.len(), "{kept} slots");
                let read = read_all(opened.reader.as_mut());
                assert!(is_suffix(&read, &all[..kept]), "{name} at {at}: not a prefix");
                assert!(disk.names().unwrap().iter().any(|name| name.starts_with("damaged-")), "set aside");
                let tail = opened.tail;
                let more = append_all(&mut opened, tail, 9, 400);
                drop(opened);
                let mut again = open(&disk, &tiny()).expect("recovered for good");
                assert_eq!(read_all(again.reader.as_mut()).last(), more.last());
            }
        }
    }
}

#[test]
fn recover_loses_only_what_comes_after_the_damage() {
    let (whole, all) = written(false);
    let disk = whole.process_end();
    let last = segments(&disk).pop().unwrap();
    disk.flip(&last, SECTOR + 40, 1);
    let mut opened = recover(&disk);
    let first_lost = opened.tail.slot.0;
    assert!(first_lost >= 10, "everything in earlier segments is kept, not only {first_lost} slots");
    let read = read_all(opened.reader.as_mut());
    assert_eq!(read, all[..read.len()]);
}

#[test]
fn recover_goes_on_without_a_damaged_snapshot_only_if_the_log_is_complete() {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk, &tiny()).unwrap();
    let all = append_all(&mut opened, Tail::default(), 4, 100);
    assert_eq!(install(&mut opened, all[2].tail(), &[b"state"], Slot(1)), Outcome::Committed);
    drop(opened);
    disk.flip("snapshot", 80, 1);
    let mut opened = recover(&disk);
    assert_eq!(read_all(opened.reader.as_mut()), all);
    assert_eq!(now(opened.reader.snapshot()), Ok(None));
    drop(opened);

    let (disk, _) = written(true);
    disk.flip("snapshot", 80, 1);
    let error = now(journal(&disk, &tiny()).open(recovering())).unwrap_err();
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[test]
fn recover_finds_the_cluster_of_a_lost_identity() {
    let (disk, all) = written(false);
    disk.remove("identity").unwrap();
    let opened = recover(&disk);
    assert_eq!((opened.cluster, opened.tail), (claim().new_cluster, all.last().unwrap().tail()));
    assert!(opened.epoch > all[0].epoch());
}

#[test]
fn recover_is_safe_against_a_stop_at_any_step() {
    let (whole, all) = written(false);
    let name = segments(&whole)[1].clone();
    for step in 0.. {
        let disk = whole.process_end();
        disk.flip(&name, 2 * SECTOR + 40, 1);
        disk.fail(step, Fault::Stop);
        let finished = now(journal(&disk, &tiny()).open(recovering())).is_ok();
        let mut survives = step;
        let image = disk.power_cut(&mut || {
            survives = survives * 7 + 3;
            survives % 3 != 0
        });
        // A recovery that was interrupted never looks finished, and the next one succeeds.
        let refused = open(&image, &tiny());
        let lawful = matches!(refused, Err(OpenError::Corrupt { .. } | OpenError::Regressed(_)));
        assert!(lawful, "step {step}: {refused:?}");
        let opened = recover(&image);
        let kept = usize::try_from(opened.tail.slot.0).unwrap();
        assert_eq!(opened.tail, all[kept - 1].tail(), "step {step}");
        assert!(image.names().unwrap().iter().any(|name| name.starts_with("damaged-")), "step {step}");
        if finished {
            return;
        }
    }
}

#[test]
fn a_copied_directory_is_refused_until_recover() {
    let (disk, all) = written(false);
    let copy = disk.copied();
    match open(&copy, &tiny()) {
        Err(OpenError::Regressed(message)) => {
            assert!(message.contains("copy") && message.contains("leasehold recover"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let mut opened = recover(&copy);
    assert_eq!(opened.tail, all.last().unwrap().tail());
    append_all(&mut opened, all.last().unwrap().tail(), 1, 10);
    drop(opened);
    assert!(open(&copy, &tiny()).is_ok(), "recovered for good");
    assert!(open(&disk, &tiny()).is_ok(), "the original is untouched");
}

#[test]
fn a_second_claim_a_network_disk_and_a_disk_in_memory_are_told_apart() {
    let disk = MemoryDisk::new();
    let first = open(&disk, &tiny()).unwrap();
    assert_eq!(first.durability, Durability::Durable);
    assert!(matches!(open(&disk, &tiny()), Err(OpenError::InUse(_))));
    drop(first);
    disk.set_suitability(Suitability::Network("nfs".to_owned()));
    assert!(matches!(open(&disk, &tiny()), Err(OpenError::Unsuitable(message)) if message.contains("nfs")));
    disk.set_suitability(Suitability::Lossy("tmpfs".to_owned()));
    assert_eq!(open(&disk, &tiny()).unwrap().durability, Durability::Lossy);
}

#[test]
fn an_import_that_was_not_finished_is_refused() {
    let source = MemoryJournal::new();
    let mut opened = now(source.open(claim())).unwrap();
    let all = append_all(&mut opened, Tail::default(), 20, 900);
    for step in 0.. {
        let disk = MemoryDisk::new();
        disk.fail(step, Fault::Stop);
        let filled = now(journal(&disk, &tiny()).import(opened.reader.as_mut()));
        let image = disk.power_cut(&mut || true);
        match open(&image, &tiny()) {
            Ok(opened) if opened.tail == Tail::default() => assert!(filled.is_err(), "step {step}"),
            Err(OpenError::Regressed(_)) => {
                let recovered = recover(&image);
                assert_eq!(recovered.tail, all.last().unwrap().tail(), "step {step}");
            }
            Err(OpenError::Corrupt { detail, .. }) => {
                assert!(detail.contains("restore again"), "{detail}");
                let again = now(journal(&image, &tiny()).import(opened.reader.as_mut()));
                assert_eq!(again, Ok(all.last().unwrap().tail()), "step {step}");
            }
            other => panic!("step {step}: {other:?}"),
        }
        if filled.is_ok() {
            return;
        }
    }
}

#[test]
fn only_an_empty_directory_is_filled() {
    let (disk, _) = written(false);
    let source = MemoryJournal::new();
    let mut opened = now(source.open(claim())).unwrap();
    let filled = now(journal(&disk, &tiny()).import(opened.reader.as_mut()));
    assert!(matches!(filled, Err(ImportError::NotEmpty(_))), "{filled:?}");
}

#[test]
fn a_lost_duel_changes_nothing() {
    let (disk, _) = written(false);
    let before = disk.contents("identity");
    let claim = Claim { expected_epoch: Some(leasehold_types::Epoch(99)), ..claim() };
    assert!(matches!(now(journal(&disk, &tiny()).open(claim)), Err(OpenError::LostDuel(_))));
    assert_eq!(disk.contents("identity"), before);
}
