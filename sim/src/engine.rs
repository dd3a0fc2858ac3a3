//! The journal engine: the real memory journal behind a network, with everything it commits shown to the checker.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use leasehold_core::{Event, Fact, Journaled, codec};
use leasehold_journal::{
    Batch, BatchId, Chained, Claim, Confirmation, Defect, Hash, Head, Journal as _, MemoryJournal, OpenError,
    Opened, Outcome, ReadError, Reader, Room, Tail,
};
use leasehold_types::{ClusterId, Durability, Epoch, Nonce, Slot};

use crate::mistake::Mistake;

/// Which claim of the run a writer belongs to.
pub(crate) type ClaimIx = usize;

/// What a node asks of the engine.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Claim { expected: Epoch, nonce: Nonce },
    Append { claim: ClaimIx, batch: Box<Chained>, attempt: u32 },
    Confirm { claim: ClaimIx },
    Beat { claim: ClaimIx },
}

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Claimed(Result<ClaimIx, OpenError>),
    Outcome(Outcome),
    Confirmed(Confirmation),
}

/// A slot that the engine has just committed.
pub(crate) struct Fresh {
    pub(crate) batch: Chained,
    pub(crate) facts: Vec<Fact>,
}

/// See the module.
pub(crate) struct Engine {
    journal: MemoryJournal,
    claims: Vec<Opened>,
    mistake: Option<Mistake>,
    /// The hash of every slot, and the attempt that filled it, for wrappers that change what is written.
    hashes: BTreeMap<u64, Hash>,
    landed: BTreeMap<(u128, u32), Slot>,
    low_water: Slot,
    /// The state by every fact ever committed, snapshots or not (S15, S16).
    pub(crate) shadow: Journaled,
}

impl Engine {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        let journal = match mistake {
            Some(Mistake::EpochCheckApart) => MemoryJournal::with_defect(Defect::StaleAppend),
            Some(Mistake::CompactionReopens) => MemoryJournal::with_defect(Defect::CompactedReopened),
            _ => MemoryJournal::with_durability(Durability::Durable),
        };
        Self {
            journal,
            claims: Vec::new(),
            mistake,
            hashes: BTreeMap::new(),
            landed: BTreeMap::new(),
            low_water: Slot(0),
            shadow: Journaled::new(),
        }
    }

    pub(crate) fn set_available(&self, available: bool) {
        self.journal.set_available(available);
    }

    pub(crate) fn set_room(&self, room: Room) {
        self.journal.set_room(room);
    }

    pub(crate) fn tail(&self) -> Tail {
        self.journal.tail()
    }

    /// The newest epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.claims.last().map_or(0, |opened| opened.epoch.0)
    }

    /// What a claim opened: its reader and tail. The writer stays here, since late messages may still use it.
    pub(crate) fn opened(&mut self, claim: ClaimIx) -> &mut Opened {
        &mut self.claims[claim]
    }

    pub(crate) fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        now(self.journal.reader())
    }

    pub(crate) fn head(&self) -> Result<Head, ReadError> {
        let mut reader = self.reader().map_err(|error| ReadError::Unavailable(error.to_string()))?;
        now(reader.head())
    }

    /// Whether this mistake checks the epoch now and writes later.
    pub(crate) fn checks_apart(&self) -> bool {
        self.mistake == Some(Mistake::EpochCheckApart)
    }

    /// Whether the claim is still the newest.
    pub(crate) fn is_current(&self, claim: ClaimIx) -> bool {
        claim + 1 == self.claims.len()
    }

    pub(crate) fn claim(&mut self, expected: Epoch, nonce: Nonce, cluster: [u8; 16]) -> Told {
        let claim = Claim {
            nonce,
            new_cluster: ClusterId::from_bytes(cluster),
            expected_epoch: Some(expected),
            epoch_floor: Epoch(0),
            accept_loss: false,
        };
        Told::Claimed(now(self.journal.open(claim)).map(|opened| {
            self.claims.push(opened);
            self.claims.len() - 1
        }))
    }

    pub(crate) fn confirm(&mut self, claim: ClaimIx) -> Told {
        Told::Confirmed(now(self.claims[claim].writer.confirm()))
    }

    pub(crate) fn beat(&mut self, claim: ClaimIx) -> Told {
        Told::Outcome(now(self.claims[claim].writer.beat()))
    }

    /// Appends; what is new in the journal afterwards is given back to be recorded.
    pub(crate) fn append(&mut self, claim: ClaimIx, batch: &Chained, attempt: u32) -> (Told, Option<Fresh>) {
        let batch = self.rewritten(batch, attempt);
        let before = self.journal.tail().slot;
        let outcome = now(self.claims[claim].writer.append(&batch));
        // A journal with that defect takes what was compacted away as if it were new.
        let reopened = self.mistake == Some(Mistake::CompactionReopens) && batch.slot <= self.low_water;
        let is_new = outcome == Outcome::Committed && (batch.slot > before || reopened);
        let fresh = is_new.then(|| self.fresh(batch));
        (Told::Outcome(outcome), fresh)
    }

    fn fresh(&mut self, batch: Chained) -> Fresh {
        if self.mistake.is_some() {
            self.hashes.insert(batch.slot.0, batch.hash());
        }
        let facts = codec::decode_body(&batch.body).expect("what a node writes can be read");
        Fresh { batch, facts }
    }

    /// Applies what was committed to the shadow; how many events it makes.
    pub(crate) fn follow(&mut self, facts: &[Fact], events: &mut Vec<Event>) {
        for fact in facts {
            self.shadow.replay(fact, events);
        }
    }

    /// What reaches the journal under a mistake that changes bodies or slots on the way.
    fn rewritten(&mut self, batch: &Chained, attempt: u32) -> Chained {
        let changed = |changed: Batch| Chained::new(changed, batch.epoch());
        let strips = |fact: &Fact| match self.mistake {
            Some(Mistake::TtlUnjournaled) => matches!(fact, Fact::TtlChanged { .. }),
            Some(Mistake::NotesExpireEarly) => matches!(fact, Fact::NoteCleared { .. }),
            Some(Mistake::ExpiryUnjournaled) => matches!(fact, Fact::Expired { .. }),
            _ => false,
        };
        match self.mistake {
            Some(Mistake::TtlUnjournaled | Mistake::NotesExpireEarly | Mistake::ExpiryUnjournaled) => {
                let facts = codec::decode_body(&batch.body).expect("what a node writes can be read");
                let mut body = vec![batch.body[0]];
                facts
                    .iter()
                    .filter(|fact| !strips(fact))
                    .for_each(|fact| codec::encode_fact(fact, &mut body));
                let prev_hash = self.hash_before(batch.slot);
                changed(Batch { body: body.into(), prev_hash, ..batch.batch().clone() })
            }
            Some(Mistake::ReproposedAfterUnknown) => {
                let tail = self.journal.tail();
                let slot = *self.landed.entry((batch.id.0, attempt)).or_insert(tail.slot.next());
                let id = BatchId(batch.id.0 ^ u128::from(attempt));
                changed(Batch { slot, prev_hash: self.hash_before(slot), id, ..batch.batch().clone() })
            }
            _ => batch.clone(),
        }
    }

    fn hash_before(&self, slot: Slot) -> Hash {
        self.hashes.get(&slot.0.wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// What a node writes down as the hash of its tail: its own, unless a wrapper has changed what was written.
    pub(crate) fn witnessed(&self, tail: Tail) -> Tail {
        let hash = self.hashes.get(&tail.slot.0).copied().unwrap_or(tail.hash);
        Tail { hash, ..tail }
    }

    /// Drops the newest slots, as an engine that lost acknowledged writes in its own fail-over.
    pub(crate) fn lose(&mut self, slots: u64) {
        let keep = self.journal.tail().slot.0.saturating_sub(slots).max(self.low_water.0);
        self.journal.lose_after(Slot(keep));
        self.hashes.retain(|slot, _| *slot <= keep);
    }

    /// Stores a snapshot of the state right after `at`, without making it current yet.
    pub(crate) fn store_snapshot(&mut self, claim: ClaimIx, at: Tail, state: &Journaled) -> bool {
        let snapshots = &mut self.claims[claim].snapshots;
        if now(snapshots.begin(at)).is_err() {
            return false;
        }
        codec::encode_snapshot(state, 4_096, &mut |chunk| now(snapshots.chunk(chunk))).is_ok()
    }

    /// Makes the stored snapshot current and drops what it covers, but for the newest `keep` slots.
    pub(crate) fn install_snapshot(&mut self, claim: ClaimIx, at: Slot, keep: u64) -> bool {
        let keep_from = Slot((at.0 + 1).saturating_sub(keep));
        let installed = now(self.claims[claim].snapshots.install(keep_from)) == Outcome::Committed;
        if installed {
            self.low_water = self.low_water.max(Slot(keep_from.0.saturating_sub(1)));
        }
        installed
    }
}

/// Runs a future of the memory journal, which never waits unless a test has paused it.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory journal never waits"),
    }
}
