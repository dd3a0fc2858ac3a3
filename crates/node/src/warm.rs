//! The journaled state of a journal that others append to, kept up to date: what makes a standby warm.

use leasehold_core::Journaled;
use leasehold_journal::{Chained, Head, OpenError, ReadError, Reader, Sighting, Slots, Tail, Witness};
use leasehold_types::{ClusterId, Epoch, FencingToken};

use crate::happened;
use crate::replay::Replay;
use crate::ring::Ring;
use crate::{NodeConfig, StartError};

/// See the module.
pub struct Warm {
    pub(crate) replay: Replay,
    pub(crate) ring: Ring,
    most: Most,
}

/// What is kept at most, and read at all.
#[derive(Clone, Copy)]
struct Most {
    events: usize,
    bytes: usize,
    format: u8,
}

impl Warm {
    /// The state of the current snapshot.
    ///
    /// # Errors
    /// The snapshot cannot be read.
    pub async fn load(config: &NodeConfig, reader: &mut dyn Reader) -> Result<Self, StartError> {
        let NodeConfig { ring_events: events, ring_bytes: bytes, known_format: format, .. } = *config;
        Self::from_snapshot(Most { events, bytes, format }, reader).await
    }

    async fn from_snapshot(most: Most, reader: &mut dyn Reader) -> Result<Self, StartError> {
        let replay = Replay::from_snapshot_up_to(most.format, reader).await?;
        let ring = Ring::new(most.events, most.bytes, replay.snapshot_slot);
        Ok(Self { replay, ring, most })
    }

    /// The state as far as it has come.
    pub fn state(&self) -> &Journaled {
        &self.replay.state
    }

    /// The epoch whose active node resigned, if that is the last fact (J16).
    pub fn resigned(&self) -> Option<Epoch> {
        self.replay.resigned
    }

    /// Bytes of the facts after the snapshot that it began with.
    pub fn bytes(&self) -> u64 {
        self.replay.bytes
    }

    /// Gives the state out.
    pub fn into_state(self) -> Journaled {
        self.replay.state
    }

    /// How far it has come.
    pub fn tail(&self) -> Tail {
        self.replay.tail
    }

    /// Replays everything up to `to`, which the journal `cluster` says is its tail.
    ///
    /// # Errors
    /// [`OpenError::Regressed`] if what was replayed before is not what the journal holds now.
    pub async fn follow(
        &mut self,
        cluster: ClusterId,
        to: Tail,
        reader: &mut dyn Reader,
    ) -> Result<(), StartError> {
        while self.tail().slot < to.slot {
            match reader.slots(self.tail().slot.next()).await? {
                Slots::Found(slots) => {
                    let Some(first) = slots.first() else { return Err(not_the_tail(self.tail(), to).into()) };
                    self.must_follow(cluster, to, first.prev_hash)?;
                    self.apply(&slots)?;
                }
                // It fell behind what is kept; the snapshot that replaced the slots has them.
                Slots::Compacted { .. } => *self = Self::from_snapshot(self.most, reader).await?,
            }
        }
        if self.tail().slot == to.slot { self.must_follow(cluster, to, to.hash) } else { Ok(()) }
    }

    /// The same for a journal that may have been recovered meanwhile: then everything is replayed anew, if the recovery has
    /// given up what was replayed here.
    ///
    /// # Errors
    /// See [`Warm::follow`].
    pub async fn follow_recovered(
        &mut self,
        cluster: ClusterId,
        to: Tail,
        reader: &mut dyn Reader,
    ) -> Result<(), StartError> {
        let regressed = match self.follow(cluster, to, reader).await {
            Err(StartError::Open(error @ OpenError::Regressed(_))) => error,
            other => return other,
        };
        self.follow_anew(cluster, to, reader, regressed).await
    }

    /// Replays everything anew, unless what was replayed has been lost without anybody giving it up: then `regressed`.
    ///
    /// # Errors
    /// See [`Warm::follow`].
    pub async fn follow_anew(
        &mut self,
        cluster: ClusterId,
        to: Tail,
        reader: &mut dyn Reader,
        regressed: OpenError,
    ) -> Result<(), StartError> {
        let mut anew = Self::from_snapshot(self.most, reader).await?;
        anew.follow(cluster, to, reader).await?;
        if !anew.gives_up(&self.as_witness(cluster)) {
            return Err(regressed.into());
        }
        *self = anew;
        Ok(())
    }

    /// Whether a recovery of this journal has given up what was seen before (J9).
    pub fn gives_up(&self, seen: &Witness) -> bool {
        seen.is_given_up_by(self.state().generation(), self.state().recovered_above())
    }

    /// Refuses a journal that ends before what was replayed already: it has lost acknowledged writes (J9).
    ///
    /// # Errors
    /// [`OpenError::Regressed`].
    pub fn must_not_be_ahead(&self, cluster: ClusterId, tail: Tail) -> Result<(), OpenError> {
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
        Witness {
            cluster,
            tail: self.tail(),
            epoch: Epoch(0),
            token: FencingToken::new(self.state().last_token()).ok(),
            directory: None,
            generation: Some(self.state().generation()),
            claimed: None,
        }
    }

    fn apply(&mut self, slots: &[Chained]) -> Result<(), StartError> {
        for slot in slots {
            let mut events = Vec::new();
            self.replay.apply(slot, &mut events)?;
            self.ring.push(happened::of_slot(slot.slot, events));
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
