use super::*;
use crate::{Batch, BatchId, Chained, Claim, Journal, MemoryJournal, Outcome};
use leasehold_types::Nonce;

fn witness() -> Witness {
    Witness {
        cluster: ClusterId::from_bytes([1; 16]),
        tail: Tail { slot: Slot(10), hash: Hash([3; 32]) },
        epoch: Epoch(4),
        token: Some(FencingToken::new(77).unwrap()),
        directory: Some(Directory { host: Some("a".to_owned()), inode: 5, born: Some(6) }),
        generation: Some(Generation(2)),
        claimed: Some(Nonce::from_bytes([8; 16])),
    }
}

fn sighting() -> Sighting {
    let Witness { cluster, tail, epoch, directory, .. } = witness();
    Sighting { cluster, epoch, tail, hash_there: Some(tail.hash), directory }
}

fn regressed(now: &Sighting) -> String {
    match witness().check(now) {
        Err(OpenError::Regressed(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_and_anything_later_is_accepted() {
    assert_eq!(witness().check(&sighting()), Ok(()));
    let tail = Tail { slot: Slot(11), hash: Hash([9; 32]) };
    assert_eq!(witness().check(&Sighting { tail, epoch: Epoch(9), ..sighting() }), Ok(()));
    assert_eq!(witness().check(&Sighting { tail, hash_there: None, ..sighting() }), Ok(()), "compacted");
}

#[test]
fn every_kind_of_loss_is_named_with_advice() {
    let short = Tail { slot: Slot(9), hash: Hash([9; 32]) };
    let message = regressed(&Sighting { tail: short, hash_there: None, ..sighting() });
    assert!(message.contains("ends at slot 9") && message.contains("leasehold recover"), "{message}");
    let message = regressed(&Sighting { hash_there: Some(Hash([4; 32])), ..sighting() });
    assert!(message.contains("slot 10 holds another batch"), "{message}");
    let message = regressed(&Sighting { epoch: Epoch(3), ..sighting() });
    assert!(message.contains("epoch is 3"), "{message}");
    let message = regressed(&Sighting { cluster: ClusterId::from_bytes([2; 16]), ..sighting() });
    assert!(message.contains("belongs to cluster"), "{message}");
}

#[test]
fn what_is_less_may_still_come_and_what_is_other_never_does() {
    let short = Tail { slot: Slot(9), hash: Hash([9; 32]) };
    let less = Sighting { tail: short, hash_there: None, ..sighting() };
    assert!(witness().may_still_come(&less));
    assert!(witness().may_still_come(&Sighting { epoch: Epoch(3), ..sighting() }));
    assert!(!witness().may_still_come(&Sighting { cluster: ClusterId::from_bytes([2; 16]), ..less }));
    let other = Sighting { epoch: Epoch(3), hash_there: Some(Hash([4; 32])), ..sighting() };
    assert!(!witness().may_still_come(&other));
}

#[test]
fn a_token_that_was_given_out_is_in_the_journal() {
    assert_eq!(witness().check_token(77), Ok(()));
    assert!(matches!(witness().check_token(76), Err(OpenError::Regressed(why)) if why.contains("token 77")));
}

#[test]
fn a_copied_directory_is_noticed() {
    let same = sighting().directory.unwrap();
    for (other, word) in [
        (Directory { host: Some("b".to_owned()), ..same.clone() }, "another machine"),
        (Directory { inode: 8, ..same.clone() }, "made anew"),
        (Directory { born: Some(7), ..same.clone() }, "made anew"),
    ] {
        let message = regressed(&Sighting { directory: Some(other), ..sighting() });
        assert!(message.contains(word) && message.contains("copy"), "{message}");
    }
    let unnamed = Directory { host: None, ..same };
    assert_eq!(witness().check(&Sighting { directory: Some(unnamed), ..sighting() }), Ok(()));
}

#[test]
fn a_stored_witness_is_read_back_and_a_changed_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("witness");
    assert_eq!(Witness::load(&path), Ok(None));
    for token in [None, witness().token] {
        let stored = Witness { token, ..witness() };
        stored.store(&path).unwrap();
        assert_eq!(Witness::load(&path), Ok(Some(stored)));
    }
    let mut bytes = fs::read(&path).unwrap();
    bytes[30] ^= 4;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(Witness::load(&path), Err(OpenError::Corrupt { .. })));
}

#[test]
fn the_identity_of_a_directory_survives_a_move_but_not_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    fs::create_dir(&one).unwrap();
    let before = Directory::of(&one).unwrap();
    fs::rename(&one, &two).unwrap();
    assert_eq!(before.difference(&Directory::of(&two).unwrap()), None);
    fs::create_dir(&one).unwrap();
    assert_eq!(before.difference(&Directory::of(&one).unwrap()), Some("it was made anew"));
}

#[tokio::test]
async fn an_engine_that_lost_a_slot_is_noticed_when_it_is_opened() {
    let journal = MemoryJournal::new();
    let claim = |byte| Claim {
        nonce: Nonce::from_bytes([byte; 16]),
        new_cluster: ClusterId::from_bytes([1; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let mut opened = journal.open(claim(1)).await.unwrap();
    for slot in 1..=3 {
        let prev_hash = journal.tail().hash;
        let batch = Batch { slot: Slot(slot), id: BatchId(slot.into()), prev_hash, body: "x".into() };
        let batch = Chained::new(batch, opened.epoch);
        assert_eq!(opened.writer.append(&batch).await, Outcome::Committed);
    }
    let (cluster, epoch) = (opened.cluster, opened.epoch);
    let tail = journal.tail();
    let witness = Witness { cluster, tail, epoch, directory: None, ..witness() };

    let mut again = journal.open(claim(2)).await.unwrap();
    let now = Sighting::of(&mut again, &witness, None).await.unwrap();
    assert_eq!(witness.check(&now), Ok(()));
    journal.lose_after(Slot(2));
    let mut regressed = journal.open(claim(3)).await.unwrap();
    let now = Sighting::of(&mut regressed, &witness, None).await.unwrap();
    assert!(matches!(witness.check(&now), Err(OpenError::Regressed(_))));
    let prev_hash = journal.tail().hash;
    let batch = Batch { slot: Slot(3), id: BatchId(9), prev_hash, body: "other".into() };
    let batch = Chained::new(batch, regressed.epoch);
    assert_eq!(regressed.writer.append(&batch).await, Outcome::Committed);
    let mut diverged = journal.open(claim(4)).await.unwrap();
    let now = Sighting::of(&mut diverged, &witness, None).await.unwrap();
    assert!(
        matches!(witness.check(&now), Err(OpenError::Regressed(message)) if message.contains("another batch"))
    );
}

#[test]
fn a_recovery_gives_up_what_its_floor_is_above_of() {
    let remote = Witness { directory: None, ..witness() };
    let (same, next) = (Generation(2), Generation(3));
    assert!(remote.is_given_up_by(next, Some(77)));
    assert!(!remote.is_given_up_by(same, Some(77)), "the same generation lost it");
    assert!(!remote.is_given_up_by(next, Some(76)), "a token could be given twice");
    assert!(!remote.is_given_up_by(next, None), "the floor is not known");
    let unknown = Witness { generation: None, ..remote };
    assert!(!unknown.is_given_up_by(next, Some(77)), "an old file does not say what it has seen");
    assert!(!witness().is_given_up_by(next, Some(77)), "an embedded journal has one user");
}
