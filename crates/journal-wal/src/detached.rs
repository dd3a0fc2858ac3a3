//! A directory looked at from outside: no lock, no claim, perhaps a writer in another process.

use std::io;
use std::sync::Arc;

use leasehold_journal::{Directory, Head, OpenError, ReadError, Tail};
use leasehold_types::Slot;

use crate::disk::Disk;
use crate::identity::{Identity, Phase};
use crate::log;
use crate::reader::{End, View};
use crate::segment::{self, Header, HeaderSector, Scanner, Step};
use crate::snapshot::{SNAPSHOT, SnapshotFile};

/// Reads a directory without claiming it.
pub(crate) struct Detached {
    disk: Arc<dyn Disk>,
    /// The last snapshot loaded, by the identity of its file: loading one checks every byte.
    loaded: Option<(Directory, Arc<SnapshotFile>)>,
}

impl Detached {
    /// Looks at a directory that holds a journal.
    pub(crate) fn open(disk: Arc<dyn Disk>) -> Result<Self, OpenError> {
        match Identity::load(disk.as_ref())? {
            Some((Identity { phase: Phase::Ready | Phase::Recovering, .. }, _)) => {
                Ok(Self { disk, loaded: None })
            }
            Some(_) => Err(OpenError::Unavailable("the journal is not complete yet".to_owned())),
            None => Err(OpenError::Unavailable(format!("there is no journal in {}", disk.path("")))),
        }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    pub(crate) fn snapshot(&mut self) -> Result<Option<Arc<SnapshotFile>>, ReadError> {
        let file = match self.disk.open(SNAPSHOT) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unavailable(&error)),
        };
        let identity = file.identity().map_err(|error| unavailable(&error))?;
        match &self.loaded {
            Some((known, snapshot)) if *known == identity => return Ok(Some(Arc::clone(snapshot))),
            _ => {}
        }
        let loaded = SnapshotFile::load(self.disk.as_ref()).map_err(reading)?;
        let snapshot = loaded.map(|(snapshot, _)| Arc::new(snapshot));
        self.loaded = snapshot.clone().map(|snapshot| (identity, snapshot));
        Ok(snapshot)
    }

    pub(crate) fn view(&mut self) -> Result<View, ReadError> {
        let keep_from = self.snapshot()?.map_or(Slot(1), |snapshot| snapshot.keep_from);
        let segments = self.segments()?;
        Ok(View { segments, keep_from, end: End::Whole })
    }

    /// The headers of all segments. One that vanishes meanwhile was compacted; one without a header is not in use yet.
    fn segments(&self) -> Result<Vec<Header>, ReadError> {
        let mut headers = Vec::new();
        for number in log::numbers(self.disk.as_ref()).map_err(|error| unavailable(&error))? {
            let name = segment::name(number);
            let read = self.disk.open(&name).and_then(|file| Header::read(file.as_ref(), number));
            match read {
                Ok(HeaderSector::Whole(header)) => headers.push(header),
                Ok(HeaderSector::Zero) => {}
                Ok(HeaderSector::Corrupt) => {
                    let place = format!("{} at byte 0", self.disk.path(&name));
                    let detail = "the checksum of the segment's header does not match".to_owned();
                    return Err(ReadError::Corrupt { place, detail });
                }
                Ok(HeaderSector::TooNew(version)) => {
                    return Err(ReadError::Unavailable(format!(
                        "{name} has format {version}, which is newer"
                    )));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Ok(headers)
    }

    pub(crate) fn head(&mut self) -> Result<Head, ReadError> {
        let identity = Identity::load(self.disk.as_ref()).map_err(reading)?;
        let gone = || ReadError::Unavailable("the journal is gone".to_owned());
        let (Identity { cluster, epoch, nonce, .. }, _) = identity.ok_or_else(gone)?;
        Ok(Head { cluster, epoch, nonce, tail: self.tail()?, beat: 0 })
    }

    /// The last committed slot: found in the last segment alone, which begins with the tail before it. Damage there is
    /// told by whoever reads the slots.
    fn tail(&mut self) -> Result<Tail, ReadError> {
        let view = self.view()?;
        let Some(header) = view.segments.last() else { return Ok(Tail::default()) };
        let file = self.disk.open(&segment::name(header.number)).map_err(|error| unavailable(&error))?;
        let mut scanner = Scanner::new(file, *header);
        while let Step::Batch { .. } = scanner.step().map_err(|error| unavailable(&error))? {}
        scanner.sync().map_err(|error| unavailable(&error))?;
        Ok(scanner.tail())
    }
}

fn unavailable(error: &io::Error) -> ReadError {
    ReadError::Unavailable(error.to_string())
}

fn reading(error: OpenError) -> ReadError {
    match error {
        OpenError::Corrupt { place, detail } => ReadError::Corrupt { place, detail },
        other => ReadError::Unavailable(other.to_string()),
    }
}
