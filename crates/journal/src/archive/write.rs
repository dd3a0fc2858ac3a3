//! Writing an archive.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use leasehold_types::{ClusterId, Epoch, Slot};

use super::{MAGIC, VERSION, missing};
use crate::{Chained, Head, ReadError, Reader, Slots, SnapshotInfo, Tail};

/// How often a snapshot may be replaced under our hands before we give up.
const ATTEMPTS: u32 = 8;

/// What an archive holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The journal's id.
    pub cluster: ClusterId,
    /// The epoch when it was made.
    pub epoch: Epoch,
    /// The last slot in it.
    pub tail: Tail,
    /// The slot of the snapshot in it; 0 if there is none.
    pub snapshot: Slot,
    /// Its size.
    pub bytes: u64,
}

/// Why an archive could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file could not be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Refuses a path at which there is something: an archive is never overwritten.
///
/// # Errors
/// [`ArchiveError::Write`].
pub fn must_be_new(path: &Path) -> Result<(), ArchiveError> {
    if !path.exists() {
        return Ok(());
    }
    let error = io::Error::new(io::ErrorKind::AlreadyExists, "there is a file already");
    Err(ArchiveError::Write { path: path.to_owned(), error })
}

/// Writes what `reader` holds into a new file. The file appears under its name only when it is whole and durable; one
/// that is there already is not touched.
///
/// # Errors
/// See [`ArchiveError`]. No file is left behind.
pub async fn write_archive(reader: &mut dyn Reader, path: &Path) -> Result<Summary, ArchiveError> {
    let failed = |error| ArchiveError::Write { path: path.to_owned(), error };
    must_be_new(path)?;
    let tmp = path.with_extension("partial");
    let outcome = write_tmp(reader, &tmp).await;
    let finished = outcome.and_then(|summary| finish(&tmp, path).map(|()| summary).map_err(failed));
    if finished.is_err() {
        let _ = fs::remove_file(&tmp); // best effort: the error that matters is told below
    }
    finished
}

async fn write_tmp(reader: &mut dyn Reader, tmp: &Path) -> Result<Summary, ArchiveError> {
    for _ in 1..ATTEMPTS {
        match write_once(reader, tmp).await {
            Err(ArchiveError::Read(ReadError::Replaced)) => {}
            other => return other,
        }
    }
    write_once(reader, tmp).await
}

fn finish(tmp: &Path, path: &Path) -> io::Result<()> {
    File::open(tmp)?.sync_all()?;
    fs::rename(tmp, path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

async fn write_once(reader: &mut dyn Reader, tmp: &Path) -> Result<Summary, ArchiveError> {
    let failed = |error| ArchiveError::Write { path: tmp.to_owned(), error };
    let head = reader.head().await?;
    let snapshot = reader.snapshot().await?;
    let mut out = Summed::create(tmp).map_err(failed)?;
    out.header(&head, snapshot.as_ref()).map_err(failed)?;
    let mut at = Slot(0);
    if let Some(info) = &snapshot {
        at = info.at.slot;
        for index in 0..info.chunks {
            let chunk = reader.chunk(info, index).await?;
            out.sized(&chunk).map_err(failed)?;
        }
    }
    // A snapshot can be newer than the head that was read before it; then the archive ends where the snapshot does.
    let tail = match &snapshot {
        Some(info) if info.at.slot > head.tail.slot => return Err(ReadError::Replaced.into()),
        _ => head.tail,
    };
    let mut next = at.next();
    while next <= tail.slot {
        let found = match reader.slots(next).await? {
            Slots::Found(found) if !found.is_empty() => found,
            other => return Err(missing(next, &other).into()),
        };
        for committed in found.iter().filter(|committed| committed.slot <= tail.slot) {
            out.slot(committed).map_err(failed)?;
            next = committed.slot.next();
        }
    }
    let bytes = out.finish().map_err(failed)?;
    Ok(Summary { cluster: head.cluster, epoch: head.epoch, tail, snapshot: at, bytes })
}

/// Writes and sums up.
struct Summed {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Summed {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create(path)?), hasher: blake3::Hasher::new(), bytes: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn tail(&mut self, tail: Tail) -> io::Result<()> {
        self.put(&tail.slot.0.to_le_bytes())?;
        self.put(&tail.hash.0)
    }

    fn header(&mut self, head: &Head, snapshot: Option<&SnapshotInfo>) -> io::Result<()> {
        self.put(MAGIC)?;
        self.put(&VERSION.to_le_bytes())?;
        self.put(head.cluster.as_bytes())?;
        self.put(&head.epoch.0.to_le_bytes())?;
        self.put(head.nonce.as_bytes())?;
        self.tail(head.tail)?;
        self.put(&[u8::from(snapshot.is_some())])?;
        let Some(info) = snapshot else { return Ok(()) };
        self.tail(info.at)?;
        self.put(&info.chunks.to_le_bytes())?;
        self.put(&info.hash.0)
    }

    fn sized(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a part is over 4 GiB"))?;
        self.put(&len.to_le_bytes())?;
        self.put(bytes)
    }

    fn slot(&mut self, committed: &Chained) -> io::Result<()> {
        self.put(&committed.epoch().0.to_le_bytes())?;
        self.put(&committed.id.0.to_le_bytes())?;
        self.sized(&committed.body)?;
        self.put(&committed.hash().0)
    }

    fn finish(mut self) -> io::Result<u64> {
        let sum = *self.hasher.finalize().as_bytes();
        self.put(&sum)?;
        self.file.flush()?;
        Ok(self.bytes)
    }
}
