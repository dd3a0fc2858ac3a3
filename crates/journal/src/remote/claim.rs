//! What taking a journal over has in common on remote engines: the epoch that comes next, and the start-up probe (J4, J11).

use std::fmt::Debug;

use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

use super::record::Holder;
use crate::{Batch, BatchId, Claim, Hash, OpenError, Outcome};

/// How often a claim that takes whatever epoch there is tries again when another claim was faster.
pub const ATTEMPTS: usize = 5;

/// Who the journal belongs to once it is claimed after `current`.
///
/// # Errors
/// The claim expects another epoch: it has lost the duel.
pub fn next_holder(claim: &Claim, current: Epoch) -> Result<Holder, OpenError> {
    if claim.expected_epoch.is_some_and(|expected| expected != current) {
        return Err(OpenError::LostDuel(current));
    }
    Ok(Holder { epoch: current.max(claim.epoch_floor).next(), nonce: claim.nonce })
}

/// A small value beside the slots that is not as it was written; an engine keeps it in a `kind` of this name.
pub fn damaged_part(kind: &str, name: &str) -> OpenError {
    let detail = "it is missing or has a wrong length".to_owned();
    OpenError::Corrupt { place: format!("{kind} {name}"), detail }
}

/// One of the claims of the probe.
pub fn probe_claim(byte: u8) -> Claim {
    Claim {
        nonce: Nonce::from_bytes([byte; 16]),
        new_cluster: ClusterId::from_bytes([byte; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    }
}

/// What the probe appends.
pub fn probe_batch(slot: Slot) -> Batch {
    Batch { slot, id: BatchId(1), prev_hash: Hash::ZERO, body: "probe".into() }
}

/// What the probe must have seen of an append after a gap, from a replaced epoch, from the current one, and of another
/// batch in the same slot.
///
/// # Errors
/// It was anything else.
pub fn judge_probe(seen: &[Outcome; 4]) -> Result<(), OpenError> {
    let conflict = Outcome::Conflict(Some(BatchId(1)));
    if *seen == [Outcome::Conflict(None), Outcome::Fenced, Outcome::Committed, conflict] {
        return Ok(());
    }
    Err(failed_probe("gap, stale, right, twice", seen))
}

/// The engine is not what we need.
pub fn failed_probe(what: &str, seen: impl Debug) -> OpenError {
    OpenError::Unsuitable(format!("the engine failed the start-up probe ({what}): {seen:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_above_the_floor_and_the_one_before() {
        let claim =
            |expected_epoch, floor| Claim { expected_epoch, epoch_floor: Epoch(floor), ..probe_claim(1) };
        let epoch = |claim: Claim| next_holder(&claim, Epoch(4)).map(|holder| holder.epoch);
        assert_eq!(epoch(claim(None, 0)), Ok(Epoch(5)));
        assert_eq!(epoch(claim(Some(Epoch(4)), 9)), Ok(Epoch(10)));
        assert_eq!(epoch(claim(Some(Epoch(3)), 0)), Err(OpenError::LostDuel(Epoch(4))));
    }

    #[test]
    fn a_probe_passes_with_the_right_answers_alone() {
        let right = [
            Outcome::Conflict(None),
            Outcome::Fenced,
            Outcome::Committed,
            Outcome::Conflict(Some(BatchId(1))),
        ];
        assert_eq!(judge_probe(&right), Ok(()));
        for index in 0..4 {
            let mut wrong = right.clone();
            wrong[index] = Outcome::Unknown("lost".to_owned());
            assert!(judge_probe(&wrong).is_err(), "{wrong:?}");
        }
    }
}
