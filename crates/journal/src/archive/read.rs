//! Reading an archive.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_types::{ClusterId, Epoch, Nonce, Slot};

use super::{CHECKSUM_BYTES, MAGIC, Summary, VERSION};
use crate::{
    Batch, BatchId, Chained, Hash, Head, OpenError, ReadError, Reader, Slots, SnapshotHasher, SnapshotInfo,
    Tail,
};

/// Bytes of bodies given by one read, about.
const READ_BYTES: usize = 4 << 20;

/// A backup file that was found whole.
pub struct Archive {
    file: Source,
    bytes: u64,
    head: Head,
    snapshot: Option<SnapshotInfo>,
    /// Where each chunk begins.
    chunks: Vec<u64>,
    /// The next slot to be read, where it begins, and the hash before it: slots are read in order, nearly always.
    cursor: (Tail, u64),
    first: (Tail, u64),
}

impl Archive {
    /// Opens a backup file and checks all of it.
    ///
    /// # Errors
    /// It is damaged, too new, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let unreadable = |error| OpenError::Unavailable(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let mut file = Source { path: path.to_owned(), file: BufReader::with_capacity(1 << 18, file), at: 0 };
        file.check_sum(bytes).map_err(opening)?;
        file.seek(0).map_err(opening)?;
        let version = file.magic_and_version().map_err(opening)?;
        if version > VERSION {
            let detail = format!("{}: format {version}, this version knows up to {VERSION}", path.display());
            return Err(OpenError::TooNew(detail));
        }
        let (head, snapshot) = file.header().map_err(opening)?;
        let chunks = file.index_chunks(snapshot.as_ref()).map_err(opening)?;
        let first = (snapshot.as_ref().map_or(Tail::default(), |info| info.at), file.at);
        let mut archive = Self { file, bytes, head, snapshot, chunks, cursor: first, first };
        archive.check_slots().map_err(opening)?;
        Ok(archive)
    }

    /// What it holds.
    pub fn summary(&self) -> Summary {
        let snapshot = self.snapshot.as_ref().map_or(Slot(0), |info| info.at.slot);
        let Head { cluster, epoch, tail, .. } = self.head;
        Summary { cluster, epoch, tail, snapshot, bytes: self.bytes }
    }

    /// The checksum says that the file is what was written; this says that what was written is a chain.
    fn check_slots(&mut self) -> Result<(), ReadError> {
        while self.cursor.0.slot < self.head.tail.slot {
            self.next_slot()?;
        }
        if self.cursor.0 != self.head.tail || self.cursor.1 + CHECKSUM_BYTES != self.bytes {
            return Err(self.file.damaged("the slots do not end where the header says"));
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Result<Chained, ReadError> {
        let (tail, at) = self.cursor;
        self.file.seek(at)?;
        let epoch = Epoch(self.file.u64()?);
        let id = BatchId(u128::from_le_bytes(self.file.array()?));
        let body = self.file.sized()?;
        let hash = Hash(self.file.array()?);
        let batch = Batch { slot: tail.slot.next(), id, prev_hash: tail.hash, body };
        let slot = batch.slot;
        let Some(committed) = Chained::checked(batch, epoch, hash) else {
            return Err(self.file.damaged(&format!("slot {slot} does not follow the chain")));
        };
        self.cursor = (committed.tail(), self.file.at);
        Ok(committed)
    }
}

#[async_trait]
impl Reader for Archive {
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError> {
        Ok(self.snapshot.clone())
    }

    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError> {
        if self.snapshot.as_ref() != Some(snapshot) {
            return Err(ReadError::Replaced);
        }
        let no_such_chunk = || ReadError::Corrupt {
            place: format!("chunk {index}"),
            detail: "there is no such chunk".to_owned(),
        };
        let at = *self.chunks.get(index as usize).ok_or_else(no_such_chunk)?;
        self.file.seek(at)?;
        self.file.sized()
    }

    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError> {
        let oldest = self.first.0.slot.next();
        let from = from.max(Slot(1));
        if from < oldest {
            return Ok(Slots::Compacted { oldest });
        }
        if from <= self.cursor.0.slot {
            self.cursor = self.first;
        }
        let (mut found, mut bytes) = (Vec::new(), 0);
        while self.cursor.0.slot < self.head.tail.slot && bytes < READ_BYTES {
            let committed = self.next_slot()?;
            if committed.slot >= from {
                bytes += committed.body.len() + 64;
                found.push(committed);
            }
        }
        Ok(Slots::Found(found))
    }

    async fn head(&mut self) -> Result<Head, ReadError> {
        Ok(self.head)
    }
}

/// A file that knows where it is, for messages.
struct Source {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
}

impl Source {
    fn damaged(&self, detail: &str) -> ReadError {
        let place = format!("{} at byte {}", self.path.display(), self.at);
        ReadError::Corrupt { place, detail: detail.to_owned() }
    }

    fn seek(&mut self, to: u64) -> Result<(), ReadError> {
        if to == self.at {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(to)).map_err(|error| self.damaged(&error.to_string()))?;
        self.at = to;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|error| self.damaged(&error.to_string()))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_le_bytes)
    }

    fn tail(&mut self) -> Result<Tail, ReadError> {
        Ok(Tail { slot: Slot(self.u64()?), hash: Hash(self.array()?) })
    }

    fn sized(&mut self) -> Result<Bytes, ReadError> {
        let len = self.u32()?;
        // Grown while reading, so that a wrong length cannot ask for memory that the file does not have.
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(u64::from(len)).read_to_end(&mut bytes);
        if read.map_err(|error| self.damaged(&error.to_string()))? != len as usize {
            return Err(self.damaged("the file ends in the middle of a part"));
        }
        self.at += u64::from(len);
        Ok(Bytes::from(bytes))
    }

    /// Reads the whole file once against the checksum at its end.
    fn check_sum(&mut self, bytes: u64) -> Result<(), ReadError> {
        let cut = || self.damaged("the file is too short to be an archive");
        let mut left = bytes.checked_sub(CHECKSUM_BYTES).ok_or_else(cut)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let part = usize::try_from(left.min(buffer.len() as u64)).expect("at most the buffer");
            self.file.read_exact(&mut buffer[..part]).map_err(|error| self.damaged(&error.to_string()))?;
            hasher.update(&buffer[..part]);
            self.at += part as u64;
            left -= part as u64;
        }
        let at = self.at;
        if self.array::<32>()? != *hasher.finalize().as_bytes() {
            self.at = at;
            return Err(self.damaged("the checksum over the file does not match: it was changed or cut"));
        }
        Ok(())
    }

    fn magic_and_version(&mut self) -> Result<u32, ReadError> {
        if self.array::<8>()? != *MAGIC {
            self.at = 0;
            return Err(self.damaged("not a backup of a journal"));
        }
        self.u32()
    }

    fn header(&mut self) -> Result<(Head, Option<SnapshotInfo>), ReadError> {
        let cluster = ClusterId::from_bytes(self.array()?);
        let epoch = Epoch(self.u64()?);
        let nonce = Nonce::from_bytes(self.array()?);
        let head = Head { cluster, epoch, nonce, tail: self.tail()?, beat: 0 };
        let snapshot = match self.array::<1>()? {
            [0] => None,
            [1] => Some(SnapshotInfo { at: self.tail()?, chunks: self.u32()?, hash: Hash(self.array()?) }),
            _ => return Err(self.damaged("neither a snapshot nor none")),
        };
        Ok((head, snapshot))
    }

    fn index_chunks(&mut self, snapshot: Option<&SnapshotInfo>) -> Result<Vec<u64>, ReadError> {
        let Some(info) = snapshot else { return Ok(Vec::new()) };
        let mut hasher = SnapshotHasher::default();
        let mut chunks = Vec::new();
        for _ in 0..info.chunks {
            chunks.push(self.at);
            hasher.update(&self.sized()?);
        }
        if hasher.finish() != info.hash {
            return Err(self.damaged("the chunks do not have the hash of the snapshot"));
        }
        Ok(chunks)
    }
}

fn opening(error: ReadError) -> OpenError {
    match error {
        ReadError::Corrupt { place, detail } => OpenError::Corrupt { place, detail },
        other => OpenError::Unavailable(other.to_string()),
    }
}
