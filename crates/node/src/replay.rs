//! Building the journaled state again from a snapshot and the slots after it.

use leasehold_core::codec::{self, CodecError, SnapshotDecoder};
use leasehold_core::{Event, Fact, Journaled};
use leasehold_journal::{Chained, Hash, OpenError, ReadError, Reader, Slots, Tail};
use leasehold_types::{Epoch, Slot, WallTime};

use crate::StartError;

/// The journaled state right after a slot.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) state: Journaled,
    pub(crate) tail: Tail,
    /// The slot of the snapshot that it began with; 0 if there was none.
    pub(crate) snapshot_slot: Slot,
    pub(crate) snapshot_bytes: u64,
    /// Bytes of the bodies after the snapshot.
    pub(crate) bytes: u64,
    /// Epochs that they were appended in.
    pub(crate) lives: usize,
    /// The last of them.
    epoch: Option<Epoch>,
    /// The epoch whose active node resigned, if that is the last fact (J16).
    pub(crate) resigned: Option<Epoch>,
    /// Newer formats are refused.
    known_format: u8,
}

impl Replay {
    /// The state of the current snapshot, or the empty one.
    pub(crate) async fn from_snapshot(reader: &mut dyn Reader) -> Result<Self, StartError> {
        Self::from_snapshot_up_to(codec::FORMAT, reader).await
    }

    /// The same for a node that knows only formats up to this one.
    pub(crate) async fn from_snapshot_up_to(
        known_format: u8,
        reader: &mut dyn Reader,
    ) -> Result<Self, StartError> {
        let mut replay = Self {
            state: Journaled::new(),
            tail: Tail::default(),
            snapshot_slot: Slot(0),
            snapshot_bytes: 0,
            bytes: 0,
            lives: 0,
            epoch: None,
            resigned: None,
            known_format,
        };
        let Some(info) = reader.snapshot().await? else { return Ok(replay) };
        let mut decoder = SnapshotDecoder::default();
        for index in 0..info.chunks {
            let chunk = reader.chunk(&info, index).await?;
            replay.snapshot_bytes += chunk.len() as u64;
            let place = || format!("chunk {index} of the snapshot at slot {}", info.at.slot);
            replay
                .must_know(&chunk)
                .and_then(|()| decoder.chunk(&chunk))
                .map_err(|error| unreadable(place(), error))?;
        }
        let place = || format!("the snapshot at slot {}", info.at.slot);
        replay.state = decoder.finish().map_err(|error| unreadable(place(), error))?;
        (replay.tail, replay.snapshot_slot) = (info.at, info.at.slot);
        Ok(replay)
    }

    fn must_know(&self, bytes: &[u8]) -> Result<(), CodecError> {
        match codec::format_of(bytes) {
            Some(format) if format > self.known_format => Err(CodecError::TooNew(format)),
            _ => Ok(()),
        }
    }

    /// The slots after what was replayed until now, as many as the reader gives at once; empty at the tail.
    pub(crate) async fn next_slots(&self, reader: &mut dyn Reader) -> Result<Vec<Chained>, StartError> {
        match reader.slots(self.tail.slot.next()).await? {
            Slots::Found(found) => Ok(found),
            Slots::Compacted { oldest } => {
                let detail = format!("it was compacted away, the oldest kept is {oldest}");
                Err(corrupt(format!("slot {}", self.tail.slot.next()), detail).into())
            }
        }
    }

    /// Applies the next slot, after checking that it is the next (S8), and adds its events to `events`.
    pub(crate) fn apply(
        &mut self,
        slot: &Chained,
        events: &mut Vec<(WallTime, Event)>,
    ) -> Result<(), StartError> {
        let facts = self.facts_of(slot)?;
        let mut made = Vec::new();
        for fact in &facts {
            self.state.replay(fact, &mut made);
            let at = time_of(fact).unwrap_or_default();
            events.extend(made.drain(..).map(|event| (at, event)));
        }
        self.go_past(slot, &facts);
        Ok(())
    }

    /// The same for whoever wants no events: to make them takes a good part of the time.
    pub(crate) fn apply_untold(&mut self, slot: &Chained) -> Result<(), StartError> {
        let facts = self.facts_of(slot)?;
        self.state.replay_untold(&facts);
        self.go_past(slot, &facts);
        Ok(())
    }

    /// The facts of the next slot, if it is the next and follows the chain.
    fn facts_of(&self, slot: &Chained) -> Result<Vec<Fact>, StartError> {
        let place = || format!("slot {}", slot.slot);
        if slot.slot != self.tail.slot.next() {
            return Err(corrupt(
                place(),
                format!("it stands where slot {} should be", self.tail.slot.next()),
            )
            .into());
        }
        if slot.prev_hash != self.tail.hash {
            return Err(corrupt(place(), broken_chain(slot.prev_hash, self.tail.hash)).into());
        }
        let facts = self.must_know(&slot.body).and_then(|()| codec::decode_body(&slot.body));
        facts.map_err(|error| unreadable(place(), error))
    }

    /// These facts of the next slot were applied.
    fn go_past(&mut self, slot: &Chained, facts: &[Fact]) {
        let epoch = slot.epoch();
        self.resigned = (facts.last() == Some(&Fact::Resigned)).then_some(epoch);
        self.bytes += slot.body.len() as u64;
        if self.epoch.replace(epoch) != Some(epoch) {
            self.lives += 1;
        }
        self.tail = slot.tail();
    }
}

/// When a fact that makes events was decided.
fn time_of(fact: &Fact) -> Option<WallTime> {
    match fact {
        Fact::Granted(granted) => Some(granted.at),
        Fact::Released { at, .. } | Fact::Expired { at, .. } | Fact::SessionEnded { at, .. } => Some(*at),
        Fact::ForceReleased(forced) => Some(forced.at),
        _ => None,
    }
}

fn broken_chain(found: Hash, expected: Hash) -> String {
    format!("the chain is broken: it follows {found:?}, the slot before has {expected:?}")
}

fn corrupt(place: String, detail: String) -> ReadError {
    ReadError::Corrupt { place, detail }
}

fn unreadable(place: String, error: CodecError) -> StartError {
    match error {
        CodecError::TooNew(_) => OpenError::TooNew(format!("{place}: {error}")).into(),
        CodecError::Malformed { .. } => corrupt(place, error.to_string()).into(),
    }
}
