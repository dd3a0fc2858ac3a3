//! Readers: of the journal that is open here, or of a directory that another process may be writing.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::{Chained, Head, ReadError, Reader, Slots, SnapshotHasher, SnapshotInfo};
use leasehold_types::Slot;

use crate::core::Core;
use crate::detached::Detached;
use crate::disk::Disk;
use crate::sector;
use crate::segment::{self, Header, Scanner, Step};
use crate::snapshot::SnapshotFile;

/// Bytes of bodies given by one read, about.
const READ_BYTES: usize = 4 << 20;
/// Segments can be deleted between looking and opening; after so many times something else is wrong.
const ATTEMPTS: usize = 8;

/// What can be read now.
pub(crate) struct View {
    /// Oldest first.
    pub(crate) segments: Vec<Header>,
    pub(crate) keep_from: Slot,
    pub(crate) end: End,
}

/// How far the committed slots go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Up to this slot.
    At(Slot),
    /// As far as there are whole batches. The last one may have been written by another process and not been synced
    /// yet, so the reader syncs it before it gives it: what is whole and durable is committed, or will be found to be.
    Whole,
}

enum Source {
    Live(Arc<Core>),
    Detached(Detached),
}

impl Source {
    fn disk(&self) -> &dyn Disk {
        match self {
            Self::Live(core) => core.disk.as_ref(),
            Self::Detached(detached) => detached.disk(),
        }
    }

    fn view(&mut self) -> Result<View, ReadError> {
        match self {
            Self::Live(core) => {
                let state = core.state();
                let end = End::At(state.tail().slot);
                Ok(View { segments: state.segments.clone(), keep_from: state.keep_from, end })
            }
            Self::Detached(detached) => detached.view(),
        }
    }

    fn snapshot(&mut self) -> Result<Option<Arc<SnapshotFile>>, ReadError> {
        match self {
            Self::Live(core) => Ok(core.state().snapshot.clone()),
            Self::Detached(detached) => detached.snapshot(),
        }
    }
}

/// Reads the embedded journal.
pub(crate) struct WalReader {
    source: Source,
    /// Where the last read ended: reads are in order, nearly always.
    cursor: Option<Scanner>,
    /// The snapshot last looked at. Its file stays readable when it is replaced.
    snapshot: Option<Arc<SnapshotFile>>,
    /// The whole hash so far, and the next chunk it needs.
    hashed: (u32, SnapshotHasher),
}

impl WalReader {
    /// A reader of the journal that is open here.
    pub(crate) fn live(core: Arc<Core>) -> Self {
        Self::new(Source::Live(core))
    }

    /// A reader of a directory.
    pub(crate) fn detached(detached: Detached) -> Self {
        Self::new(Source::Detached(detached))
    }

    fn new(source: Source) -> Self {
        Self { source, cursor: None, snapshot: None, hashed: (0, SnapshotHasher::default()) }
    }

    fn read(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let from = from.max(Slot(1));
        for _ in 0..ATTEMPTS {
            let view = self.source.view()?;
            if from < view.keep_from {
                return Ok(Slots::Compacted { oldest: view.keep_from });
            }
            if matches!(view.end, End::At(last) if from > last) {
                return Ok(Slots::Found(Vec::new()));
            }
            match self.read_view(&view, from) {
                Err(Stopped::Gone) => self.cursor = None,
                Err(Stopped::Error(error)) => return Err(error),
                Ok(found) => return Ok(Slots::Found(found)),
            }
        }
        Err(ReadError::Unavailable("segments keep vanishing while they are read".to_owned()))
    }

    fn read_view(&mut self, view: &View, from: Slot) -> Result<Vec<Chained>, Stopped> {
        let mut scanner = self.scanner(view, from)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while bytes < READ_BYTES && End::At(scanner.tail().slot) != view.end {
            match self.step(&mut scanner, view)? {
                Some(committed) if committed.slot >= from => {
                    bytes += committed.body.len() + 128;
                    found.push(committed);
                }
                Some(_) => {}
                None => match self.following(&scanner, view)? {
                    Some(next) => scanner = next,
                    None => {
                        scanner.sync().map_err(|error| unavailable(&error))?;
                        break;
                    }
                },
            }
        }
        self.cursor = Some(scanner);
        Ok(found)
    }

    /// A scanner that has not yet passed `from`.
    fn scanner(&mut self, view: &View, from: Slot) -> Result<Scanner, Stopped> {
        let holds = |header: &&Header| header.after.slot < from;
        let header = view.segments.iter().rev().find(holds).ok_or(Stopped::Gone)?;
        match self.cursor.take() {
            Some(mut cursor) if cursor.header() == header && cursor.tail().slot < from => {
                cursor.refresh();
                Ok(cursor)
            }
            _ => self.open(*header),
        }
    }

    fn open(&self, header: Header) -> Result<Scanner, Stopped> {
        match self.source.disk().open(&segment::name(header.number)) {
            Ok(file) => Ok(Scanner::new(file, header)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Stopped::Gone),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// The next batch, or none when the segment is at its end.
    fn step(&self, scanner: &mut Scanner, view: &View) -> Result<Option<Chained>, Stopped> {
        for _ in 0..ATTEMPTS {
            match scanner.step().map_err(|error| unavailable(&error))? {
                Step::Batch { committed, .. } => return Ok(Some(committed)),
                Step::End | Step::Torn { .. } => return Ok(None),
                // A sector that is just being written elsewhere can look wrong for a moment.
                Step::Corrupt { .. } if view.end == End::Whole => {
                    std::thread::yield_now();
                    scanner.refresh();
                }
                Step::Corrupt { sector, detail } => return Err(self.corrupt(scanner, sector, detail)),
            }
        }
        match scanner.step().map_err(|error| unavailable(&error))? {
            Step::Batch { committed, .. } => Ok(Some(committed)),
            Step::End | Step::Torn { .. } => Ok(None),
            Step::Corrupt { sector, detail } => Err(self.corrupt(scanner, sector, detail)),
        }
    }

    fn following(&self, scanner: &Scanner, view: &View) -> Result<Option<Scanner>, Stopped> {
        let number = scanner.header().number + 1;
        match view.segments.iter().find(|header| header.number == number) {
            Some(next) if next.after == scanner.tail() => self.open(*next).map(Some),
            None if view.end == End::Whole => Ok(None),
            _ => Err(self.corrupt(scanner, scanner.position(), "a batch is missing here")),
        }
    }

    fn corrupt(&self, scanner: &Scanner, sector: u64, detail: &str) -> Stopped {
        let name = self.source.disk().path(&segment::name(scanner.header().number));
        let place = format!("{name} at byte {}", sector * sector::BYTES as u64);
        Stopped::Error(ReadError::Corrupt { place, detail: detail.to_owned() })
    }

    /// The file of this snapshot, if it can still be read.
    fn file_of(&mut self, snapshot: &SnapshotInfo) -> Result<Arc<SnapshotFile>, ReadError> {
        match &self.snapshot {
            Some(file) if file.info == *snapshot => Ok(Arc::clone(file)),
            _ => {
                let current = self.source.snapshot()?.filter(|file| file.info == *snapshot);
                let file = current.ok_or(ReadError::Replaced)?;
                self.hashed = (0, SnapshotHasher::default());
                self.snapshot = Some(Arc::clone(&file));
                Ok(file)
            }
        }
    }

    /// Takes a chunk into the whole hash, and checks that at the last one.
    fn hash(&mut self, file: &SnapshotFile, index: u32, chunk: &Bytes) -> Result<(), ReadError> {
        let disk = self.source.disk();
        if index == 0 {
            self.hashed = (0, SnapshotHasher::default());
        }
        if index + 1 == file.info.chunks && index != self.hashed.0 {
            self.hashed = (0, SnapshotHasher::default());
            for earlier in 0..index {
                self.hashed.1.update(&file.chunk(disk, earlier)?);
            }
            self.hashed.0 = index;
        }
        if index == self.hashed.0 {
            self.hashed.1.update(chunk);
            self.hashed.0 += 1;
        }
        if index + 1 == file.info.chunks && self.hashed.1.finish() != file.info.hash {
            let place = disk.path(crate::snapshot::SNAPSHOT);
            return Err(ReadError::Corrupt { place, detail: "the whole hash does not match".to_owned() });
        }
        Ok(())
    }
}

/// Why a read did not end.
enum Stopped {
    /// A segment was deleted meanwhile: look again.
    Gone,
    Error(ReadError),
}

fn unavailable(error: &io::Error) -> Stopped {
    Stopped::Error(ReadError::Unavailable(error.to_string()))
}

#[async_trait]
impl Reader for WalReader {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        self.snapshot = self.source.snapshot()?;
        self.hashed = (0, SnapshotHasher::default());
        Ok(self.snapshot.as_ref().map(|file| file.info.clone()))
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        let file = self.file_of(snapshot)?;
        let chunk = file.chunk(self.source.disk(), index)?;
        self.hash(&file, index, &chunk)?;
        Ok(chunk)
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        self.read(from)
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        match &mut self.source {
            Source::Live(core) => Ok(core.state().head),
            Source::Detached(detached) => detached.head(),
        }
    }
}
