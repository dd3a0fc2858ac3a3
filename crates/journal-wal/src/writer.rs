//! The writer: one durable write for each batch.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use leasehold_journal::{Chained, Confirmation, Head, Limits, Outcome, Reader, Room, Slots, Tail, Writer};
use leasehold_types::{Epoch, Slot};

use crate::Owner;
use crate::core::{Core, Provision};
use crate::disk::{Disk, DiskFile};
use crate::identity::{Identity, Phase};
use crate::keeper::SPARE;
use crate::reader::WalReader;
use crate::sector;
use crate::segment::{self, Header};

/// The segment that is appended to.
pub(crate) struct Active {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) header: Header,
    /// The first free sector.
    pub(crate) next: u64,
}

impl Active {
    /// Takes a zero-filled file into use as segment `header.number`: named durably first, then headed, then used.
    pub(crate) fn begin(disk: &dyn Disk, from: &str, header: Header) -> io::Result<Self> {
        let name = segment::name(header.number);
        disk.rename(from, &name)?;
        disk.sync()?;
        Self::head(disk.open_for_appends(&name)?, header)
    }

    /// Writes the header of a segment that has none yet.
    pub(crate) fn head(file: Box<dyn DiskFile>, mut header: Header) -> io::Result<Self> {
        header.sectors = file.size()? / sector::BYTES as u64;
        file.write_at(0, &header.encode())?;
        file.sync()?;
        Ok(Self { file, header, next: 1 })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.header.sectors * sector::BYTES as u64
    }

    pub(crate) fn bytes_left(&self) -> u64 {
        (self.header.sectors - self.next) * sector::BYTES as u64
    }

    pub(crate) fn has_room_for(&self, sectors: usize) -> bool {
        self.next + sectors as u64 <= self.header.sectors
    }

    /// Writes a batch at the end, without syncing it.
    pub(crate) fn write(&mut self, batch: &Chained, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        sector::encode(buffer, self.header.salt(), self.next, batch);
        self.file.write_at(self.next * sector::BYTES as u64, buffer)?;
        self.next += (buffer.len() / sector::BYTES) as u64;
        Ok(())
    }
}

/// Why a batch could not be given a place.
enum NoPlace {
    /// The disk is full; nothing was written.
    Full(String),
    Broken(io::Error),
}

/// Appends to the embedded journal. Appending blocks the calling thread until the bytes are durable: the node's
/// loop has a thread to itself, and a hand-over to another thread would cost as much again.
pub(crate) struct WalWriter {
    core: Arc<Core>,
    owner: Arc<Owner>,
    epoch: Epoch,
    active: Active,
    tail: Tail,
    /// The batch in the last slot, to recognise it when it is appended again.
    last: Option<Chained>,
    buffer: Vec<u8>,
}

impl WalWriter {
    pub(crate) fn new(core: Arc<Core>, owner: Arc<Owner>, active: Active, last: Option<Chained>) -> Self {
        let (epoch, tail) = {
            let state = core.state();
            (state.head.epoch, state.tail())
        };
        Self { core, owner, epoch, active, tail, last, buffer: Vec::new() }
    }

    fn commit(&mut self, batch: &Chained) -> Outcome {
        match self.make_room(sector::sectors_for(batch.body.len())) {
            Ok(()) => {}
            Err(NoPlace::Full(reason)) => return Outcome::Unknown(format!("disk full: {reason}")),
            Err(NoPlace::Broken(error)) => return self.broken("taking a segment into use", &error),
        }
        if let Err(error) = self.active.write(batch, &mut self.buffer) {
            return self.broken("write", &error);
        }
        if let Err(error) = self.active.file.sync() {
            return self.broken("sync", &error);
        }
        self.tail = batch.tail();
        self.last = Some(batch.clone());
        self.core.note_active(self.active.bytes(), self.active.bytes_left());
        let recovering = {
            let mut state = self.core.state();
            state.head.tail = self.tail;
            state.phase == Phase::Recovering
        };
        if recovering { self.end_recovery() } else { Outcome::Committed }
    }

    /// The first batch after a recovery is committed: from now on the journal may be opened like any other.
    fn end_recovery(&mut self) -> Outcome {
        let Head { cluster, epoch, nonce, .. } = self.core.state().head;
        let identity = Identity { cluster, phase: Phase::Ready, epoch, nonce };
        if let Err(error) = identity.store(self.core.disk.as_ref()) {
            return self.broken("ending the recovery", &error);
        }
        self.core.state().phase = Phase::Ready;
        Outcome::Committed
    }

    /// Nothing is ever tried again after this: a second fsync can succeed although the bytes of the first are lost.
    fn broken(&mut self, what: &str, error: &io::Error) -> Outcome {
        let name = self.core.disk.path(&segment::name(self.active.header.number));
        let reason = format!("{name}: {what} failed: {error}");
        self.core.fail(&reason);
        Outcome::Failed(reason)
    }

    fn make_room(&mut self, sectors: usize) -> Result<(), NoPlace> {
        if self.active.has_room_for(sectors) {
            return Ok(());
        }
        self.take_spare()?;
        let header = Header { number: self.active.header.number + 1, after: self.tail, ..self.active.header };
        let batch_sectors = sector::sectors_for(self.core.config.body_limit());
        let header = Header { batch_sectors: u32::try_from(batch_sectors).expect("a limit"), ..header };
        self.active = Active::begin(self.core.disk.as_ref(), SPARE, header).map_err(NoPlace::Broken)?;
        self.core.note_active(self.active.bytes(), self.active.bytes_left());
        {
            let mut state = self.core.state();
            state.segments.push(self.active.header);
            state.spare = Provision::Wanted;
        }
        self.owner.wake_keeper();
        Ok(())
    }

    /// Takes the segment prepared ahead; the next one is wanted only once this one has its own name. If there is none yet, or the last try to make one was refused, the keeper is
    /// asked to make it now, and waited for.
    fn take_spare(&self) -> Result<(), NoPlace> {
        let mut state = self.core.state();
        if state.spare != Provision::Ready {
            state.spare = Provision::Wanted;
            state.spare_awaited = true;
            drop(state);
            self.owner.wake_keeper();
            state = self.core.state();
        }
        loop {
            match &state.spare {
                Provision::Ready => {
                    state.spare = Provision::Taken;
                    state.spare_awaited = false;
                    return Ok(());
                }
                Provision::Refused(reason) => {
                    let reason = reason.clone();
                    state.spare_awaited = false;
                    return Err(NoPlace::Full(reason));
                }
                Provision::Wanted | Provision::Taken => state = self.core.wait(state),
            }
        }
    }

    /// An append to a slot that is taken or was compacted away.
    async fn append_again(&self, batch: &Chained) -> Outcome {
        match &self.last {
            Some(last) if last.batch() == batch.batch() => return Outcome::Committed,
            Some(last) if last.slot == batch.slot => return Outcome::Conflict(Some(last.id)),
            _ => {}
        }
        let found = WalReader::live(Arc::clone(&self.core)).slots(batch.slot).await;
        match found {
            Ok(Slots::Found(found)) => match found.first() {
                Some(there) if there.batch() == batch.batch() => Outcome::Committed,
                there => Outcome::Conflict(there.map(|there| there.id)),
            },
            Ok(Slots::Compacted { .. }) | Err(_) => Outcome::Conflict(None),
        }
    }

    fn failure(&self) -> Option<String> {
        self.core.state().failed.clone()
    }
}

#[async_trait]
impl Writer for WalWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        if let Some(reason) = self.failure() {
            return Outcome::Failed(reason);
        }
        if batch.slot > Slot(0) && batch.slot <= self.tail.slot {
            return self.append_again(batch).await;
        }
        let follows = batch.slot == self.tail.slot.next() && batch.prev_hash == self.tail.hash;
        if !follows || batch.epoch() != self.epoch || batch.body.len() > self.core.config.body_limit() {
            return Outcome::Conflict(None);
        }
        self.commit(batch)
    }

    async fn confirm(&mut self) -> Confirmation {
        // The exclusive lock on the directory is ours until we drop it: nobody can have taken over.
        match self.failure() {
            Some(reason) => Confirmation::Unknown(reason),
            None => Confirmation::Current,
        }
    }

    async fn beat(&mut self) -> Outcome {
        let mut state = self.core.state();
        if let Some(reason) = &state.failed {
            return Outcome::Failed(reason.clone());
        }
        state.head.beat += 1;
        Outcome::Committed
    }

    fn limits(&self) -> Limits {
        let body_bytes = self.core.config.body_limit();
        Limits { body_bytes, confirm_is_free: true, ..Limits::REMOTE }
    }

    fn room(&self) -> Room {
        self.core.room()
    }
}
