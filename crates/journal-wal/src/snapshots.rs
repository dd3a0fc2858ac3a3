//! Storing snapshots beside the writer, and truncating what they cover.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::{Limits, Outcome, ReadError, SnapshotWriter, Tail};
use leasehold_types::Slot;

use crate::Owner;
use crate::core::{Core, Provision};
use crate::identity::remove_if_there;
use crate::snapshot::{Draft, TMP};

/// Stores the snapshots of the embedded journal.
pub(crate) struct WalSnapshots {
    core: Arc<Core>,
    owner: Arc<Owner>,
    draft: Option<Draft>,
}

impl WalSnapshots {
    pub(crate) fn new(core: Arc<Core>, owner: Arc<Owner>) -> Self {
        Self { core, owner, draft: None }
    }

    fn refuse_if_failed(&self) -> Result<(), ReadError> {
        self.core.state().failed.clone().map_or(Ok(()), |reason| Err(ReadError::Unavailable(reason)))
    }

    fn may_begin(&self, at: Tail) -> Result<(), ReadError> {
        self.refuse_if_failed()?;
        let state = self.core.state();
        let oldest = state.snapshot.as_ref().map_or(Slot(0), |snapshot| snapshot.info.at.slot);
        let tail = state.tail();
        if at.slot < oldest || at.slot > tail.slot || (at.slot == tail.slot && at != tail) {
            let detail =
                format!("a snapshot must be between slot {oldest} and the tail at slot {}", tail.slot);
            return Err(ReadError::Corrupt { place: format!("slot {}", at.slot), detail });
        }
        Ok(())
    }

    /// The reserve may have been used up, or be too small by now: the keeper looks after it.
    fn reserve_again(&self) {
        self.core.state().reserve = Provision::Wanted;
        self.owner.wake_keeper();
    }

    /// Gives the room of an unfinished snapshot back. What cannot be deleted now is deleted by the next beginning.
    fn drop_draft(&mut self) {
        self.draft = None;
        let _ = remove_if_there(self.core.disk.as_ref(), TMP);
        self.reserve_again();
    }

    fn switch(&self, draft: Draft, keep_from: Slot) -> Result<(), Outcome> {
        let keep_from = keep_from.min(draft.at.slot.next()).max(self.core.state().keep_from);
        let unfinished =
            |error: io::Error| Outcome::Unknown(format!("the snapshot could not be written: {error}"));
        let finished = draft.finish(keep_from).map_err(unfinished)?;
        let snapshot = finished.switch().map_err(|error| {
            let reason = format!("switching to a new snapshot failed: {error}");
            self.core.fail(&reason);
            Outcome::Failed(reason)
        })?;
        let mut state = self.core.state();
        state.snapshot = Some(Arc::new(snapshot));
        state.raise_low_water(keep_from);
        Ok(())
    }
}

#[async_trait]
impl SnapshotWriter for WalSnapshots {
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError> {
        self.draft = None;
        self.may_begin(at)?;
        let draft = Draft::begin(Arc::clone(&self.core.disk), self.core.cluster, at);
        self.draft = Some(draft.map_err(|error| ReadError::Unavailable(error.to_string()))?);
        Ok(())
    }

    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError> {
        self.refuse_if_failed()?;
        Limits::REMOTE.admit(&bytes)?;
        let not_begun = || ReadError::Unavailable("no snapshot was begun".to_owned());
        let written = self.draft.as_mut().ok_or_else(not_begun)?.chunk(&bytes);
        written.map_err(|error| {
            self.drop_draft();
            ReadError::Unavailable(format!("the snapshot could not be written: {error}"))
        })
    }

    async fn install(&mut self, keep_from: Slot) -> Outcome {
        if let Some(reason) = self.core.state().failed.clone() {
            return Outcome::Failed(reason);
        }
        let Some(draft) = self.draft.take() else {
            return Outcome::Conflict(None);
        };
        if self.may_begin(draft.at).is_err() {
            return Outcome::Conflict(None);
        }
        match self.switch(draft, keep_from) {
            Ok(()) => {
                self.reserve_again();
                Outcome::Committed
            }
            Err(outcome) => {
                self.drop_draft();
                outcome
            }
        }
    }
}
