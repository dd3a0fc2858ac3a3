//! The file layer: everything the journal asks of a disk, so that tests can make each step fail or crash.

mod direct;
mod memory;
mod real;

use std::io;

use leasehold_journal::Directory;

pub use memory::{Fault, MemoryDisk, Op};
pub use real::RealDisk;

/// A directory of files. Names are plain file names.
pub trait Disk: Send + Sync + 'static {
    /// Makes the directory ready and takes the exclusive lock on it, held until the guard is dropped.
    ///
    /// # Errors
    /// See [`LockError`].
    fn lock(&self) -> Result<Box<dyn Send + Sync>, LockError>;

    /// What the file system can promise.
    ///
    /// # Errors
    /// The system's.
    fn suitability(&self) -> io::Result<Suitability>;

    /// What tells this directory from a copy of it.
    ///
    /// # Errors
    /// The system's.
    fn identity(&self) -> io::Result<Directory>;

    /// The names of all files.
    ///
    /// # Errors
    /// The system's; none when there is no directory yet.
    fn names(&self) -> io::Result<Vec<String>>;

    /// A new, empty file; one with that name must not be there.
    ///
    /// # Errors
    /// The system's.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// A file that is there.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// A file that is there, for writes of whole sectors that are synced one by one.
    ///
    /// # Errors
    /// The system's.
    fn open_for_appends(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open(name)
    }

    /// Gives a file another name, replacing the one that had it.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Deletes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and deletions durable.
    ///
    /// # Errors
    /// The system's. Never to be tried again: what is durable is unknown.
    fn sync(&self) -> io::Result<()>;

    /// The file's whole name, for messages.
    fn path(&self, name: &str) -> String;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Reads until the buffer is full or the file ends; how much it was.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of it.
    ///
    /// # Errors
    /// The system's; a part may have been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The system's. Never to be tried again: what is durable is unknown, and a second try can succeed falsely.
    fn sync(&self) -> io::Result<()>;

    /// Takes room for so many bytes, without writing them.
    ///
    /// # Errors
    /// The system's.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Its size.
    ///
    /// # Errors
    /// The system's.
    fn size(&self) -> io::Result<u64>;

    /// What tells this file from a copy of it.
    ///
    /// # Errors
    /// The system's.
    fn identity(&self) -> io::Result<Directory>;
}

/// What a file system can promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Suitability {
    /// A local file system: locks hold, and what is synced stays.
    Durable,
    /// In memory: gone with the machine.
    Lossy(String),
    /// A network file system: locks and fsync may not mean what they say.
    Network(String),
}

/// Why the lock on a directory was not given.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; its id, if it could be read.
    Held(Option<u32>),
    /// The system's.
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether the disk is full, as opposed to broken.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
