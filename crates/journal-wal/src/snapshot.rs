//! Snapshot files: chunks, each with a checksum, and a whole hash (J13).
//!
//! The current snapshot is the file called `snapshot`. A new one is written beside it and renamed over it: that is the
//! switch. Its trailer carries the low-water mark, so that the mark is durable before anything is deleted (J8).

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use leasehold_journal::{Hash, OpenError, ReadError, SnapshotHasher, SnapshotInfo, Tail};
use leasehold_types::{ClusterId, Slot};

use crate::disk::{Disk, DiskFile, is_full};
use crate::identity::remove_if_there;
use crate::sector::{u32_at, u64_at};

pub(crate) const SNAPSHOT: &str = "snapshot";
pub(crate) const TMP: &str = "snapshot.tmp";
/// Room for one snapshot, given back to the file system when the disk is full and a snapshot must be written.
pub(crate) const RESERVE: &str = "reserve";

const MAGIC: &[u8; 8] = b"LHSNAPSH";
const VERSION: u32 = 1;
/// magic 8 · version u32 · cluster 16 · at slot u64 · at hash 32 · checksum u32.
const HEADER: usize = 8 + 4 + 16 + 8 + 32 + 4;
/// length u32 · checksum u32, before the bytes of a chunk.
const FRAME: usize = 8;
/// The length that no chunk has: here the trailer begins.
const TRAILER_MARK: u32 = u32::MAX;
/// mark u32 · chunks u32 · keep-from u64 · whole hash 32 · checksum u32.
const TRAILER: usize = 4 + 4 + 8 + 32 + 4;

/// A whole snapshot file.
pub(crate) struct SnapshotFile {
    pub(crate) info: SnapshotInfo,
    /// The low-water mark: slots before it are compacted.
    pub(crate) keep_from: Slot,
    pub(crate) bytes: u64,
    file: Box<dyn DiskFile>,
    chunks: Vec<ChunkPlace>,
}

/// Where a chunk's bytes begin, how many they are, and their checksum.
#[derive(Clone, Copy)]
struct ChunkPlace {
    at: u64,
    len: u32,
    sum: u32,
}

fn checksum(index: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&index.to_le_bytes()), bytes)
}

impl SnapshotFile {
    /// Opens the current snapshot and checks every byte of it; `None` if there is none.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<(Self, ClusterId)>, OpenError> {
        let unavailable = |error| OpenError::Unavailable(format!("{}: {error}", disk.path(SNAPSHOT)));
        let file = match disk.open(SNAPSHOT) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unavailable(error)),
        };
        let bytes = file.size().map_err(unavailable)?;
        let mut walk = Walk { disk, file: file.as_ref(), at: 0, bytes };
        let (cluster, at) = walk.header()?;
        let (chunks, found) = walk.chunks()?;
        let (count, keep_from, hash) = walk.trailer()?;
        if count as usize != chunks.len() || found != hash {
            return Err(walk.damaged(0, "the chunks do not have the whole hash"));
        }
        let info = SnapshotInfo { at, chunks: count, hash };
        Ok(Some((Self { info, keep_from, bytes, file, chunks }, cluster)))
    }

    /// The bytes of one chunk, checked.
    pub(crate) fn chunk(&self, disk: &dyn Disk, index: u32) -> Result<Bytes, ReadError> {
        let damaged = |at: u64, detail: String| ReadError::Corrupt { place: place(disk, at), detail };
        let Some(&ChunkPlace { at, len, sum }) = self.chunks.get(index as usize) else {
            return Err(damaged(self.bytes, format!("there is no chunk {index}")));
        };
        let mut bytes = vec![0; len as usize];
        let count = self.file.read_at(at, &mut bytes).map_err(|error| damaged(at, error.to_string()))?;
        if count < bytes.len() || checksum(index, &bytes) != sum {
            return Err(damaged(at, "the checksum of the chunk does not match".to_owned()));
        }
        Ok(Bytes::from(bytes))
    }
}

fn place(disk: &dyn Disk, at: u64) -> String {
    format!("{} at byte {at}", disk.path(SNAPSHOT))
}

/// Goes through a snapshot file once.
struct Walk<'a> {
    disk: &'a dyn Disk,
    file: &'a dyn DiskFile,
    at: u64,
    bytes: u64,
}

impl Walk<'_> {
    fn damaged(&self, at: u64, detail: &str) -> OpenError {
        OpenError::Corrupt { place: place(self.disk, at), detail: detail.to_owned() }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, OpenError> {
        if self.at + count as u64 > self.bytes {
            return Err(self.damaged(self.at, "the file ends here"));
        }
        let mut bytes = vec![0; count];
        let read = self.file.read_at(self.at, &mut bytes);
        if read.map_err(|error| self.damaged(self.at, &error.to_string()))? < count {
            return Err(self.damaged(self.at, "the file ends here"));
        }
        self.at += count as u64;
        Ok(bytes)
    }

    fn header(&mut self) -> Result<(ClusterId, Tail), OpenError> {
        let bytes = self.take(HEADER)?;
        if !bytes.starts_with(MAGIC) || crc32c::crc32c(&bytes[..HEADER - 4]) != u32_at(&bytes, HEADER - 4) {
            return Err(self.damaged(0, "the checksum of the header does not match"));
        }
        if u32_at(&bytes, 8) > VERSION {
            return Err(OpenError::TooNew(place(self.disk, 8)));
        }
        let cluster = ClusterId::from_bytes(bytes[12..28].try_into().expect("sixteen bytes"));
        let hash = Hash(bytes[36..68].try_into().expect("thirty-two bytes"));
        Ok((cluster, Tail { slot: Slot(u64_at(&bytes, 28)), hash }))
    }

    fn chunks(&mut self) -> Result<(Vec<ChunkPlace>, Hash), OpenError> {
        let (mut chunks, mut hasher) = (Vec::new(), SnapshotHasher::default());
        loop {
            let start = self.at;
            let frame = self.take(FRAME)?;
            let (len, sum) = (u32_at(&frame, 0), u32_at(&frame, 4));
            if len == TRAILER_MARK {
                self.at = start;
                return Ok((chunks, hasher.finish()));
            }
            let index = u32::try_from(chunks.len()).expect("fewer than 2^32 chunks");
            let at = self.at;
            let bytes =
                self.take(len as usize).map_err(|_| self.damaged(start, "the chunk has a wrong length"))?;
            if checksum(index, &bytes) != sum {
                return Err(self.damaged(start, "the checksum of the chunk does not match"));
            }
            hasher.update(&bytes);
            chunks.push(ChunkPlace { at, len, sum });
        }
    }

    fn trailer(&mut self) -> Result<(u32, Slot, Hash), OpenError> {
        let start = self.at;
        let bytes = self.take(TRAILER)?;
        let right = crc32c::crc32c(&bytes[..TRAILER - 4]) == u32_at(&bytes, TRAILER - 4);
        if !right || self.at != self.bytes {
            return Err(self.damaged(start, "the checksum of the trailer does not match"));
        }
        let hash = Hash(bytes[16..48].try_into().expect("thirty-two bytes"));
        Ok((u32_at(&bytes, 4), Slot(u64_at(&bytes, 8)), hash))
    }
}

/// A snapshot being written.
pub(crate) struct Draft {
    pub(crate) at: Tail,
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    bytes: u64,
    hasher: SnapshotHasher,
    chunks: Vec<ChunkPlace>,
}

impl Draft {
    pub(crate) fn begin(disk: Arc<dyn Disk>, cluster: ClusterId, at: Tail) -> io::Result<Self> {
        remove_if_there(disk.as_ref(), TMP)?;
        let file = disk.create(TMP)?;
        let mut draft =
            Self { at, disk, file, bytes: 0, hasher: SnapshotHasher::default(), chunks: Vec::new() };
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(cluster.as_bytes());
        header.extend_from_slice(&at.slot.0.to_le_bytes());
        header.extend_from_slice(&at.hash.0);
        draft.write_summed(header)?;
        Ok(draft)
    }

    /// Writes at the end. On a full disk the reserve is given up for it, once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_at(self.bytes, bytes) {
            Err(error) if is_full(&error) => {
                self.disk.remove(RESERVE).map_err(|_| error)?;
                self.file.write_at(self.bytes, bytes)?;
            }
            other => other?,
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn write_summed(&mut self, mut bytes: Vec<u8>) -> io::Result<()> {
        let sum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        self.write(&bytes)
    }

    /// Writes a chunk, and makes it durable: hundreds of megabytes that are synced at the end keep the disk to themselves
    /// meanwhile, and every append waits behind them.
    pub(crate) fn chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
        let too_many = |_| io::Error::other("a snapshot of more than 2^32 chunks or bytes in one");
        let index = u32::try_from(self.chunks.len()).map_err(too_many)?;
        let len = u32::try_from(chunk.len()).map_err(too_many)?;
        let sum = checksum(index, chunk);
        let mut framed = Vec::with_capacity(FRAME + chunk.len());
        framed.extend_from_slice(&len.to_le_bytes());
        framed.extend_from_slice(&sum.to_le_bytes());
        framed.extend_from_slice(chunk);
        let at = self.bytes + FRAME as u64;
        self.write(&framed)?;
        self.file.sync()?;
        self.hasher.update(chunk);
        self.chunks.push(ChunkPlace { at, len, sum });
        Ok(())
    }

    /// Writes the trailer. What is left is to sync and to switch: [`Finished::switch`].
    pub(crate) fn finish(mut self, keep_from: Slot) -> io::Result<Finished> {
        let count = u32::try_from(self.chunks.len()).expect("checked with each chunk");
        let hash = self.hasher.finish();
        let mut trailer = Vec::with_capacity(TRAILER);
        trailer.extend_from_slice(&TRAILER_MARK.to_le_bytes());
        trailer.extend_from_slice(&count.to_le_bytes());
        trailer.extend_from_slice(&keep_from.0.to_le_bytes());
        trailer.extend_from_slice(&hash.0);
        self.write_summed(trailer)?;
        let info = SnapshotInfo { at: self.at, chunks: count, hash };
        let snapshot =
            SnapshotFile { info, keep_from, bytes: self.bytes, file: self.file, chunks: self.chunks };
        Ok(Finished { disk: self.disk, snapshot })
    }
}

/// A snapshot written to its end and not current yet.
pub(crate) struct Finished {
    disk: Arc<dyn Disk>,
    snapshot: SnapshotFile,
}

impl Finished {
    /// Makes it durable, then current, then durably current. An error here leaves unknown which one is current.
    pub(crate) fn switch(self) -> io::Result<SnapshotFile> {
        self.snapshot.file.sync()?;
        self.disk.rename(TMP, SNAPSHOT)?;
        self.disk.sync()?;
        Ok(self.snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{MemoryDisk, Op};

    /// What is synced at the end alone is a burst, and appends wait behind it.
    #[test]
    fn a_chunk_is_durable_before_the_next_is_written() {
        let disk = MemoryDisk::new();
        let cluster = ClusterId::from_bytes([1; 16]);
        let mut draft = Draft::begin(Arc::new(disk.clone()), cluster, Tail::default()).unwrap();
        for chunk in ["one", "two", "three"] {
            let before = disk.ops().len();
            draft.chunk(chunk.as_bytes()).unwrap();
            assert_eq!(disk.ops()[before..], [Op::Write, Op::Sync]);
        }
    }
}
