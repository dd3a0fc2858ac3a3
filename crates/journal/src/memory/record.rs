//! The record itself: every rule of the contract as a plain step under one lock.

use std::collections::VecDeque;

use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

use super::Defect;
use crate::{
    Batch, Chained, Claim, Confirmation, Head, OpenError, Outcome, ReadError, Slots, SnapshotInfo, Tail,
};

/// Who may append: the epoch and nonce of one claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    pub(super) epoch: Epoch,
    pub(super) nonce: Nonce,
}

/// A snapshot as stored.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) info: SnapshotInfo,
    pub(super) chunks: Vec<Bytes>,
}

pub(super) struct Record {
    cluster: Option<ClusterId>,
    holder: Option<Holder>,
    beat: u64,
    /// The slot before `slots`: the low-water mark. Nothing up to here can be read or created again.
    start: Tail,
    slots: VecDeque<Chained>,
    snapshot: Option<Stored>,
    /// Filled from elsewhere, and not recovered since.
    unrecovered: bool,
    defect: Option<Defect>,
}

/// As many slots as one read gives, so that readers are tested with more than one read.
const SLOTS_PER_READ: usize = 64;

impl Record {
    pub(super) fn new(defect: Option<Defect>) -> Self {
        Self {
            cluster: None,
            holder: None,
            beat: 0,
            start: Tail::default(),
            slots: VecDeque::new(),
            snapshot: None,
            unrecovered: false,
            defect,
        }
    }

    pub(super) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(super) fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    pub(super) fn tail(&self) -> Tail {
        self.slots.back().map_or(self.start, |last| last.tail())
    }

    fn epoch(&self) -> Epoch {
        self.holder.map_or(Epoch(0), |holder| holder.epoch)
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Result<(Holder, Tail), OpenError> {
        let current = self.epoch();
        if claim.expected_epoch.is_some_and(|expected| expected != current) && !self.has(Defect::DuelWonTwice)
        {
            return Err(OpenError::LostDuel(current));
        }
        if self.unrecovered && !claim.accept_loss && !self.has(Defect::CopyServed) {
            let message =
                "it was filled from elsewhere and may be older than the original; run `leasehold recover`";
            return Err(OpenError::Regressed(message.to_owned()));
        }
        let holder = Holder { epoch: current.max(claim.epoch_floor).next(), nonce: claim.nonce };
        self.cluster.get_or_insert(claim.new_cluster);
        self.holder = Some(holder);
        self.beat = 0;
        let tail = match self.slots.iter().rev().nth(1) {
            Some(older) if self.has(Defect::TailBeforeTakeOver) => older.tail(),
            _ => self.tail(),
        };
        Ok((holder, tail))
    }

    fn is_current(&self, holder: Holder) -> bool {
        self.holder == Some(holder)
    }

    pub(super) fn append(&mut self, holder: Holder, batch: &Chained, body_bytes: usize) -> Outcome {
        if !self.is_current(holder) && !self.has(Defect::StaleAppend) {
            return Outcome::Fenced;
        }
        if batch.body.len() > body_bytes {
            return Outcome::Conflict(None);
        }
        let tail = self.tail();
        if batch.slot <= tail.slot && !self.has(Defect::AppendedTwice) {
            return self.append_again(batch);
        }
        let gap = batch.slot != tail.slot.next() && !self.has(Defect::GapTaken);
        let stray = batch.prev_hash != tail.hash && !self.has(Defect::ChainUnchecked);
        let foreign = batch.epoch() != holder.epoch && !self.has(Defect::EpochUnread);
        if (gap || stray || foreign) && !self.has(Defect::AppendedTwice) {
            if self.has(Defect::RefusedVisible) {
                self.push(batch);
            }
            return Outcome::Conflict(None);
        }
        self.push(batch);
        Outcome::Committed
    }

    /// An append to a slot that is taken or was compacted away.
    fn append_again(&mut self, batch: &Chained) -> Outcome {
        match self.find(batch.slot) {
            Some(found) if found.batch() == batch.batch() || self.has(Defect::ConflictUnseen) => {
                Outcome::Committed
            }
            Some(found) => Outcome::Conflict(Some(found.id)),
            None if self.has(Defect::CompactedReopened) => {
                self.slots.push_front(batch.clone());
                Outcome::Committed
            }
            None => Outcome::Conflict(None),
        }
    }

    fn push(&mut self, batch: &Chained) {
        self.unrecovered = false;
        self.slots.push_back(match self.has(Defect::BodyCut) {
            true => {
                let body = batch.body.slice(..batch.body.len().min(1 << 19));
                Chained::new(Batch { body, ..batch.batch().clone() }, batch.epoch())
            }
            false => batch.clone(),
        });
    }

    fn find(&self, slot: Slot) -> Option<&Chained> {
        let index = slot.0.checked_sub(self.start.slot.0 + 1)?;
        self.slots.get(usize::try_from(index).ok()?)
    }

    pub(super) fn confirm(&self, holder: Holder) -> Confirmation {
        if self.is_current(holder) || self.has(Defect::StaleConfirm) {
            return Confirmation::Current;
        }
        Confirmation::Fenced
    }

    pub(super) fn beat(&mut self, holder: Holder) -> Outcome {
        if !self.is_current(holder) && !self.has(Defect::StaleBeat) {
            return Outcome::Fenced;
        }
        self.beat += 1;
        Outcome::Committed
    }

    pub(super) fn may_begin(&self, at: Tail) -> Result<(), ReadError> {
        let current = self.snapshot.as_ref().map_or(Slot(0), |stored| stored.info.at.slot);
        let goes_back = at.slot < current && !self.has(Defect::SnapshotGoesBack);
        if at.slot > self.tail().slot || goes_back {
            let detail = format!("a snapshot must be between slot {current} and the tail");
            return Err(ReadError::Corrupt { place: format!("slot {}", at.slot), detail });
        }
        Ok(())
    }

    pub(super) fn install(&mut self, holder: Holder, stored: Stored, keep_from: Slot) -> Outcome {
        if !self.is_current(holder) && !self.has(Defect::StaleInstall) {
            return Outcome::Fenced;
        }
        if self.may_begin(stored.info.at).is_err() {
            return Outcome::Conflict(None);
        }
        let covered = stored.info.at.slot.next();
        self.snapshot = Some(stored);
        let keep_from =
            if self.has(Defect::TruncatedPastSnapshot) { keep_from } else { keep_from.min(covered) };
        while self.slots.front().is_some_and(|oldest| oldest.slot < keep_from) {
            let gone = self.slots.pop_front().expect("there is a front");
            self.start = gone.tail();
        }
        Outcome::Committed
    }

    pub(super) fn snapshot(&self) -> Option<&Stored> {
        self.snapshot.as_ref()
    }

    pub(super) fn chunk(&self, info: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let stored = self.snapshot.as_ref().ok_or(ReadError::Replaced)?;
        if stored.info != *info && !self.has(Defect::SnapshotsMixed) {
            return Err(ReadError::Replaced);
        }
        let place = format!("chunk {index}");
        let detail = "there is no such chunk".to_owned();
        stored.chunks.get(index as usize).cloned().ok_or(ReadError::Corrupt { place, detail })
    }

    pub(super) fn read(&self, from: Slot) -> Slots {
        let from = from.max(Slot(1));
        let oldest = self.start.slot.next();
        if from < oldest && !self.has(Defect::CompactionHidden) {
            return Slots::Compacted { oldest };
        }
        // Without gaps and in order, the slots before `from` need not be looked at; a defect may make both.
        let before = if self.defect.is_none() { from.0 - oldest.0 } else { 0 };
        let slots = self.slots.iter().skip(usize::try_from(before).unwrap_or(usize::MAX));
        let wanted = slots.filter(|committed| committed.slot >= from);
        Slots::Found(wanted.take(SLOTS_PER_READ).cloned().collect())
    }

    pub(super) fn head(&self) -> Result<Head, ReadError> {
        let (Some(cluster), Some(holder)) = (self.cluster, self.holder) else {
            return Err(ReadError::NotFounded);
        };
        Ok(Head { cluster, epoch: holder.epoch, nonce: holder.nonce, tail: self.tail(), beat: self.beat })
    }

    pub(super) fn fill(
        &mut self,
        head: Head,
        snapshot: Option<Stored>,
        slots: Vec<Chained>,
    ) -> Result<Tail, String> {
        if let Some(cluster) = self.cluster {
            return Err(format!("it is cluster {cluster}"));
        }
        self.cluster = Some(head.cluster);
        self.holder = Some(Holder { epoch: head.epoch, nonce: head.nonce });
        self.start = snapshot.as_ref().map_or(Tail::default(), |stored| stored.info.at);
        self.snapshot = snapshot;
        self.unrecovered = true;
        self.slots = slots.into();
        Ok(self.tail())
    }

    pub(super) fn lose_after(&mut self, slot: Slot) {
        self.slots.retain(|committed| committed.slot <= slot);
    }

    pub(super) fn lose_everything(&mut self) {
        *self = Self::new(self.defect);
    }
}
