//! Files in a directory, reached without ever following a symbolic link.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::path::FilePath;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Where a new content is written before it takes its place.
const FRESH: &str = "fresh";

/// The files of a storage, and a place beside them for contents that are not complete yet.
#[derive(Debug)]
pub(super) struct Files {
    root: OwnedFd,
    beside: OwnedFd,
}

impl Files {
    /// The files under `root`; `beside` is a directory of the same file system that callers cannot name.
    pub(super) fn open(root: &Path, beside: &Path) -> io::Result<Self> {
        let open = |path| fs::openat(CWD, path, DIRECTORY, Mode::empty());
        Ok(Self { root: open(root)?, beside: open(beside)? })
    }

    /// Makes the directories of a path and looks whether a file can be there. After this, writing it fails only if the
    /// disk does.
    pub(super) fn prepare(&self, path: &FilePath) -> io::Result<()> {
        let (parent, leaf) = self.parent(path)?;
        match fs::statat(&parent, leaf, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(()),
            Ok(_) => Err(io::Error::other("there is something else than a file")),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes these bytes at this place and ends the file after them. Durable when it returns; can be repeated.
    pub(super) fn write_at(&self, path: &FilePath, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (parent, leaf) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | PLAIN;
        let file = File::from(fs::openat(&parent, leaf, flags, Mode::from_raw_mode(0o644))?);
        file.write_all_at(bytes, at)?;
        file.set_len(at + bytes.len() as u64)?;
        file.sync_all()?;
        Ok(fs::fsync(&parent)?)
    }

    /// Replaces the file: a reader sees the old content or the new one. Durable when it returns; can be repeated.
    pub(super) fn replace(&self, path: &FilePath, bytes: &[u8]) -> io::Result<()> {
        let (parent, leaf) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | PLAIN;
        let fresh = File::from(fs::openat(&self.beside, FRESH, flags, Mode::from_raw_mode(0o644))?);
        fresh.write_all_at(bytes, 0)?;
        fresh.sync_all()?;
        fs::renameat(&self.beside, FRESH, &parent, leaf)?;
        Ok(fs::fsync(&parent)?)
    }

    /// The first bytes of a file.
    pub(super) fn read(&self, path: &FilePath, length: u64) -> io::Result<Vec<u8>> {
        let (parent, leaf) = self.parent(path)?;
        let file = File::from(fs::openat(&parent, leaf, OFlags::RDONLY | PLAIN, Mode::empty())?);
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The directory of a path, made where it is missing, and the name in it.
    fn parent<'path>(&self, path: &'path FilePath) -> io::Result<(OwnedFd, &'path str)> {
        let (parents, leaf) = path.split();
        let mut directory = self.root.as_fd().try_clone_to_owned()?;
        for name in parents {
            match fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => fs::fsync(&directory)?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = fs::openat(&directory, name, DIRECTORY, Mode::empty())?;
        }
        Ok((directory, leaf))
    }
}
