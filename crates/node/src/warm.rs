//! The journaled state of a journal that others append to, kept up to date: what makes a standby warm.

use leasehold_journal::{Committed, Head, OpenError, ReadError, Reader, Sighting, Slots, Tail, Witness};
use leasehold_types::{ClusterId, Epoch};

use crate::replay::Replay;
use crate::ring::Ring;
use crate::{NodeConfig, StartError};

/// See the module.
pub(crate) struct Warm {
    pub(crate) replay: Replay,
    pub(crate) ring: Ring,
    most: (usize, usize),
}

impl Warm {
    /// The state of the current snapshot.
    pub(crate) async fn load(config: &NodeConfig, reader: &mut dyn Reader) -> Result<Self, StartError> {
        Self::from_snapshot((config.ring_events, config.ring_bytes), reader).await
    }

    async fn from_snapshot(most: (usize, usize), reader: &mut dyn Reader) -> Result<Self, StartError> {
        let replay = Replay::from_snapshot(reader).await?;
        let ring = Ring::new(most.0, most.1, replay.snapshot_slot);
        Ok(Self { replay, ring, most })
    }

    /// How far it has come.
    pub(crate) fn tail(&self) -> Tail {
        self.replay.tail
    }

    /// Replays everything up to `to`, which the journal `cluster` says is its tail.
    ///
    /// # Errors
    /// [`OpenError::Regressed`] if what was replayed before is not what the journal holds now.
    pub(crate) async fn follow(
        &mut self,
        cluster: ClusterId,
        to: Tail,
        reader: &mut dyn Reader,
    ) -> Result<(), StartError> {
        while self.tail().slot < to.slot {
            match reader.slots(self.tail().slot.next()).await? {
                Slots::Found(slots) => {
                    let Some(first) = slots.first() else { return Err(not_the_tail(self.tail(), to).into()) };
                    self.must_follow(cluster, to, first.batch.prev_hash)?;
                    self.apply(&slots)?;
                }
                // It fell behind what is kept; the snapshot that replaced the slots has them.
                Slots::Compacted { .. } => *self = Self::from_snapshot(self.most, reader).await?,
            }
        }
        if self.tail().slot == to.slot { self.must_follow(cluster, to, to.hash) } else { Ok(()) }
    }

    /// Refuses a journal that ends before what was replayed already: it has lost acknowledged writes (J9).
    pub(crate) fn must_not_be_ahead(&self, cluster: ClusterId, tail: Tail) -> Result<(), OpenError> {
        let now = Sighting { cluster, epoch: Epoch(u64::MAX), tail, hash_there: None, directory: None };
        self.as_witness(cluster).check(&now)
    }

    /// Who is active, if the journal says so for the epoch that the head has.
    pub(crate) fn active_of(&self, head: &Head) -> Option<&leasehold_core::TookOver> {
        self.replay.state.active().filter(|took_over| took_over.epoch == head.epoch)
    }

    fn must_follow(
        &self,
        cluster: ClusterId,
        tail: Tail,
        hash_there: leasehold_journal::Hash,
    ) -> Result<(), StartError> {
        let hash_there = Some(hash_there);
        let now = Sighting { cluster, epoch: Epoch(u64::MAX), tail, hash_there, directory: None };
        Ok(self.as_witness(cluster).check(&now)?)
    }

    /// What was replayed bears witness as the file does.
    fn as_witness(&self, cluster: ClusterId) -> Witness {
        Witness { cluster, tail: self.tail(), epoch: Epoch(0), token: None, directory: None }
    }

    fn apply(&mut self, slots: &[Committed]) -> Result<(), StartError> {
        for slot in slots {
            let mut events = Vec::new();
            self.replay.apply(slot, &mut events)?;
            self.ring.push_slot(slot.batch.slot, events);
        }
        Ok(())
    }
}

fn not_the_tail(found: Tail, expected: Tail) -> ReadError {
    let detail = format!(
        "the slots end at {} {:?}, the head says {} {:?}",
        found.slot, found.hash, expected.slot, expected.hash
    );
    ReadError::Corrupt { place: format!("slot {}", found.slot), detail }
}
