//! A journal in memory, for tests of everything that stands on a journal.

mod parts;
mod record;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_types::Durability;

use crate::{Claim, ImportError, Journal, Limits, OpenError, Opened, ReadError, Reader, Room, Slots, Tail};
use parts::{MemoryReader, MemorySnapshots, MemoryWriter};
use record::{Holder, Record, Stored};

/// A journal in memory. Clones share one record, and any number of them may open it, each fencing those before.
///
/// Nothing survives the process, and it says so ([`Durability::Volatile`]) unless a test asks for another word. Faults
/// are ordered ahead: [`MemoryJournal::fail_next_append`], [`MemoryJournal::set_available`],
/// [`MemoryJournal::set_paused`], [`MemoryJournal::set_stuck`], [`MemoryJournal::set_room`].
#[derive(Clone)]
pub struct MemoryJournal {
    shared: Arc<Mutex<Shared>>,
    /// Whether whoever appends is blocked, and told when that changes.
    stuck: Arc<(Mutex<bool>, Condvar)>,
}

/// The record and what a test has ordered to go wrong with it.
struct Shared {
    record: Record,
    durability: Durability,
    limits: Limits,
    room: Room,
    available: bool,
    paused: bool,
    /// So many may pass although it is paused.
    passes: usize,
    wakers: Vec<Waker>,
    faults: std::collections::VecDeque<Fault>,
    /// An append whose caller was told `Unknown` and that has not landed yet.
    late: Option<(Holder, crate::Chained)>,
}

/// What goes wrong with one append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The outcome is unknown, and nothing has happened nor ever will.
    UnknownBefore,
    /// The outcome is unknown, and the batch is committed.
    UnknownAfter,
    /// The outcome is unknown, and the batch lands later: just before the next append or claim of anybody.
    UnknownLate,
    /// The journal breaks: [`crate::Outcome::Failed`], and nothing has happened.
    Failed,
}

/// A deliberate mistake, to show that the conformance suite finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// Appends do not check the epoch.
    StaleAppend,
    /// A batch that is chained in another epoch than its writer's is taken.
    EpochUnread,
    /// Beats do not check the epoch.
    StaleBeat,
    /// The confirmation says yes to everybody.
    StaleConfirm,
    /// Installing a snapshot does not check the epoch.
    StaleInstall,
    /// A claim does not compare the expected epoch.
    DuelWonTwice,
    /// A claim reads the tail before it fences the others: the last slot is missing from what it tells.
    TailBeforeTakeOver,
    /// The same bytes again become another slot.
    AppendedTwice,
    /// Other bytes in a taken slot are answered as committed.
    ConflictUnseen,
    /// A slot after a gap is taken.
    GapTaken,
    /// A batch that does not follow the chain is taken.
    ChainUnchecked,
    /// A slot that was compacted away can be filled again.
    CompactedReopened,
    /// Reading compacted slots gives the oldest kept ones instead of saying so.
    CompactionHidden,
    /// Truncation goes up to `keep_from` even when the snapshot does not cover it.
    TruncatedPastSnapshot,
    /// An older snapshot replaces a newer one.
    SnapshotGoesBack,
    /// A chunk over the limit is taken.
    ChunkUnbounded,
    /// The chunks of a replaced snapshot are answered from the new one.
    SnapshotsMixed,
    /// A body is cut at half the limit.
    BodyCut,
    /// Readers see a batch whose outcome was a refusal.
    RefusedVisible,
    /// A journal filled from elsewhere is served as if it were the original.
    CopyServed,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryJournal {
    /// An empty journal that calls itself volatile.
    pub fn new() -> Self {
        Self::with(Durability::Volatile, None)
    }

    /// An empty journal that claims this durability, for tests of what depends on it.
    pub fn with_durability(durability: Durability) -> Self {
        Self::with(durability, None)
    }

    /// An empty journal with a deliberate mistake.
    pub fn with_defect(defect: Defect) -> Self {
        Self::with(Durability::Volatile, Some(defect))
    }

    fn with(durability: Durability, defect: Option<Defect>) -> Self {
        let shared = Shared {
            record: Record::new(defect),
            durability,
            limits: Limits::REMOTE,
            room: Room::Plenty,
            available: true,
            paused: false,
            passes: 0,
            wakers: Vec::new(),
            faults: std::collections::VecDeque::new(),
            late: None,
        };
        Self { shared: Arc::new(Mutex::new(shared)), stuck: Arc::default() }
    }

    /// Sets what writers opened from now on say of their limits.
    pub fn set_limits(&self, limits: Limits) {
        self.lock().limits = limits;
    }

    /// Orders a fault for the next append that has none ordered yet.
    pub fn fail_next_append(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// Cuts the journal off, or heals it: while it is cut off claims and reads fail, and outcomes are unknown.
    pub fn set_available(&self, available: bool) {
        self.lock().available = available;
    }

    /// Makes appends, beats and confirmations wait, as on a stuck disk, until the pause is ended.
    pub fn set_paused(&self, paused: bool) {
        let mut shared = self.lock();
        shared.paused = paused;
        if !paused {
            shared.wakers.drain(..).for_each(Waker::wake);
        }
    }

    /// Blocks the thread of whoever appends, as a disk does that hangs, until that is ended.
    pub fn set_stuck(&self, stuck: bool) {
        *self.stuck.0.lock().expect("nobody panics while it is stuck") = stuck;
        self.stuck.1.notify_all();
    }

    /// Returns once it is not stuck.
    fn block_while_stuck(&self) {
        let (stuck, changed) = &*self.stuck;
        let stuck = stuck.lock().expect("nobody panics while it is stuck");
        drop(changed.wait_while(stuck, |stuck| *stuck).expect("nobody panics while it is stuck"));
    }

    /// Lets the one through that waits for the end of the pause, or the next that comes.
    pub fn let_one_pass(&self) {
        let mut shared = self.lock();
        shared.passes += 1;
        shared.wakers.drain(..).for_each(Waker::wake);
    }

    /// Whether somebody waits for the end of the pause.
    pub fn is_waited_for(&self) -> bool {
        !self.lock().wakers.is_empty()
    }

    /// Sets what [`crate::Writer::room`] answers.
    pub fn set_room(&self, room: Room) {
        self.lock().room = room;
    }

    /// The last committed slot and its hash.
    pub fn tail(&self) -> Tail {
        self.lock().record.tail()
    }

    /// Drops everything after `slot`, as an engine that lost acknowledged writes in its own fail-over.
    pub fn lose_after(&self, slot: leasehold_types::Slot) {
        self.lock().record.lose_after(slot);
    }

    /// Drops the whole journal, as an engine that was emptied.
    pub fn lose_everything(&self) {
        self.lock().record.lose_everything();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no code panics while it holds the record")
    }

    /// Waits while the journal is paused.
    async fn unpaused(&self) {
        std::future::poll_fn(|context| {
            let mut shared = self.lock();
            if !shared.paused {
                return Poll::Ready(());
            }
            if let Some(left) = shared.passes.checked_sub(1) {
                shared.passes = left;
                return Poll::Ready(());
            }
            shared.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Shared {
    /// Lets an append that was held back land, if its epoch is still current then.
    fn land_late_append(&mut self) {
        if let Some((holder, batch)) = self.late.take() {
            self.record.append(holder, &batch, self.limits.body_bytes);
        }
    }

    fn admit(&self, chunk: &Bytes) -> Result<(), ReadError> {
        if self.record.has(Defect::ChunkUnbounded) { Ok(()) } else { self.limits.admit(chunk) }
    }

    fn require_available(&self) -> Result<(), String> {
        if self.available { Ok(()) } else { Err("cut off by the test".to_owned()) }
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let mut shared = self.lock();
        shared.require_available().map_err(OpenError::Unavailable)?;
        shared.land_late_append();
        let (holder, tail) = shared.record.claim(&claim)?;
        Ok(Opened {
            cluster: shared.record.cluster().expect("a claim founds the journal"),
            epoch: holder.epoch,
            tail,
            durability: shared.durability,
            reader: Box::new(MemoryReader::new(self.clone())),
            writer: Box::new(MemoryWriter::new(self.clone(), holder, shared.limits)),
            snapshots: Box::new(MemorySnapshots::new(self.clone(), holder)),
            loss: None,
        })
    }

    async fn durability(&self) -> Result<Durability, OpenError> {
        Ok(self.lock().durability)
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        self.lock().require_available().map_err(OpenError::Unavailable)?;
        Ok(Box::new(MemoryReader::new(self.clone())))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        let head = from.head().await?;
        let snapshot = match from.snapshot().await? {
            Some(info) => {
                let mut chunks = Vec::new();
                for index in 0..info.chunks {
                    chunks.push(from.chunk(&info, index).await?);
                }
                Some(Stored { info, chunks })
            }
            None => None,
        };
        let start = snapshot.as_ref().map_or(Tail::default(), |stored| stored.info.at);
        let mut slots = Vec::new();
        let mut next = start.slot.next();
        while next <= head.tail.slot {
            match from.slots(next).await? {
                Slots::Found(found) if !found.is_empty() => slots.extend(found),
                other => return Err(ImportError::Source(crate::archive::missing(next, &other))),
            }
            next = slots.last().map_or(next, |last: &crate::Chained| last.slot.next());
        }
        self.lock().record.fill(head, snapshot, slots).map_err(ImportError::NotEmpty)
    }
}
