//! The reader, the writer and the snapshot writer of a [`MemoryJournal`].

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_types::Slot;

use super::record::{Holder, Stored};
use super::{Fault, MemoryJournal};
use crate::{
    Chained, Confirmation, Hash, Head, Limits, Outcome, ReadError, Reader, Room, Slots, SnapshotHasher,
    SnapshotInfo, SnapshotWriter, Tail, Writer,
};

pub(super) struct MemoryReader {
    journal: MemoryJournal,
}

impl MemoryReader {
    pub(super) fn new(journal: MemoryJournal) -> Self {
        Self { journal }
    }
}

#[async_trait]
impl Reader for MemoryReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        let shared = self.journal.lock();
        shared.require_available().map_err(ReadError::Unavailable)?;
        Ok(shared.record.snapshot().map(|stored| stored.info.clone()))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let shared = self.journal.lock();
        shared.require_available().map_err(ReadError::Unavailable)?;
        shared.record.chunk(snapshot, index)
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let shared = self.journal.lock();
        shared.require_available().map_err(ReadError::Unavailable)?;
        Ok(shared.record.read(from))
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        let shared = self.journal.lock();
        shared.require_available().map_err(ReadError::Unavailable)?;
        shared.record.head()
    }
}

pub(super) struct MemoryWriter {
    journal: MemoryJournal,
    holder: Holder,
    limits: Limits,
    failed: bool,
}

impl MemoryWriter {
    pub(super) fn new(journal: MemoryJournal, holder: Holder, limits: Limits) -> Self {
        Self { journal, holder, limits, failed: false }
    }

    fn append_now(&mut self, batch: &Chained) -> Outcome {
        let mut shared = self.journal.lock();
        if let Err(reason) = shared.require_available() {
            return Outcome::Unknown(reason);
        }
        shared.land_late_append();
        let fault = shared.faults.pop_front();
        let unknown = Outcome::Unknown("ordered by the test".to_owned());
        match fault {
            Some(Fault::UnknownBefore) => return unknown,
            Some(Fault::UnknownLate) => {
                shared.late = Some((self.holder, batch.clone()));
                return unknown;
            }
            Some(Fault::Failed) => {
                self.failed = true;
                return Outcome::Failed("ordered by the test".to_owned());
            }
            Some(Fault::UnknownAfter) | None => {}
        }
        let outcome = shared.record.append(self.holder, batch, self.limits.body_bytes);
        if fault.is_some() { unknown } else { outcome }
    }
}

#[async_trait]
impl Writer for MemoryWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        self.journal.block_while_stuck();
        self.journal.unpaused().await;
        if self.failed {
            return Outcome::Failed("this writer has failed before".to_owned());
        }
        self.append_now(batch)
    }

    async fn confirm(&mut self) -> Confirmation {
        self.journal.unpaused().await;
        let shared = self.journal.lock();
        match shared.require_available() {
            Ok(()) => shared.record.confirm(self.holder),
            Err(reason) => Confirmation::Unknown(reason),
        }
    }

    async fn beat(&mut self) -> Outcome {
        self.journal.unpaused().await;
        let mut shared = self.journal.lock();
        match shared.require_available() {
            Ok(()) => shared.record.beat(self.holder),
            Err(reason) => Outcome::Unknown(reason),
        }
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn room(&self) -> Room {
        self.journal.lock().room
    }
}

pub(super) struct MemorySnapshots {
    journal: MemoryJournal,
    holder: Holder,
    unfinished: Option<(Tail, Vec<Bytes>)>,
}

impl MemorySnapshots {
    pub(super) fn new(journal: MemoryJournal, holder: Holder) -> Self {
        Self { journal, holder, unfinished: None }
    }
}

#[async_trait]
impl SnapshotWriter for MemorySnapshots {
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError> {
        let shared = self.journal.lock();
        shared.require_available().map_err(ReadError::Unavailable)?;
        shared.record.may_begin(at)?;
        self.unfinished = Some((at, Vec::new()));
        Ok(())
    }

    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError> {
        self.journal.lock().admit(&bytes)?;
        let not_begun = || ReadError::Unavailable("no snapshot was begun".to_owned());
        self.unfinished.as_mut().ok_or_else(not_begun)?.1.push(bytes);
        Ok(())
    }

    async fn install(&mut self, keep_from: Slot) -> Outcome {
        let Some((at, chunks)) = self.unfinished.take() else {
            return Outcome::Conflict(None);
        };
        let count = u32::try_from(chunks.len()).expect("fewer than 2^32 chunks");
        let info = SnapshotInfo { at, chunks: count, hash: hash_of(&chunks) };
        let mut shared = self.journal.lock();
        match shared.require_available() {
            Ok(()) => shared.record.install(self.holder, Stored { info, chunks }, keep_from),
            Err(reason) => Outcome::Unknown(reason),
        }
    }
}

fn hash_of(chunks: &[Bytes]) -> Hash {
    let mut hasher = SnapshotHasher::default();
    chunks.iter().for_each(|chunk| hasher.update(chunk));
    hasher.finish()
}
