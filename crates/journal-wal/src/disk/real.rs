//! A real directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use leasehold_journal::Directory;
use rustix::fs::FallocateFlags;

use super::direct::DirectFile;
use super::{Disk, DiskFile, LockError, Suitability};

/// The file that carries the exclusive lock and, for messages, the process id of its owner.
pub(crate) const LOCK: &str = "lock";

/// A real directory on a local file system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    dir: PathBuf,
}

impl RealDisk {
    /// The directory at this path; it need not be there yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Disk for RealDisk {
    fn lock(&self) -> Result<Box<dyn Send + Sync>, LockError> {
        make_dir(&self.dir)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(self.at(LOCK))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(read_pid(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        file.set_len(0)?;
        file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0)?;
        file.flush()?;
        Ok(Box::new(file))
    }

    fn suitability(&self) -> io::Result<Suitability> {
        let magic = rustix::fs::statfs(&self.dir)?.f_type;
        // The sign of the field differs between platforms; the low 32 bits are the number.
        #[allow(clippy::unnecessary_cast, reason = "the field's type differs between platforms")]
        Ok(suitability_of(magic as u32))
    }

    fn identity(&self) -> io::Result<Directory> {
        Directory::of(&self.dir)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(self.at(name))?;
        Ok(Box::new(RealFile { file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile::open(&self.at(name))?))
    }

    fn open_for_appends(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.at(name);
        match DirectFile::open(&path, RealFile::open(&path)?) {
            Ok(direct) => Ok(Box::new(direct)),
            Err(plain) => Ok(Box::new(plain)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }
}

/// Makes the directory and those above it, durably: a journal in a directory that a power cut takes away is lost.
fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_dir(parent)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// What is known of a file system by its number in `statfs`.
fn suitability_of(magic: u32) -> Suitability {
    let network = |name: &str| Suitability::Network(name.to_owned());
    match magic {
        0x6969 => network("nfs"),
        0x517B | 0xFF53_4D42 | 0xFE53_4D42 => network("smb"),
        0x0102_1997 => network("9p"),
        0x00C3_6400 => network("ceph"),
        0x6573_5546 => network("fuse"),
        0x5346_414F => network("afs"),
        0x7375_7245 => network("coda"),
        0x0116_1970 => network("gfs2"),
        0x7461_636F => network("ocfs2"),
        0x0BD0_0BD0 => network("lustre"),
        0x4750_4653 => network("gpfs"),
        0x786F_4256 => network("vboxsf"),
        0x0102_1994 => Suitability::Lossy("tmpfs".to_owned()),
        0x8584_58F6 => Suitability::Lossy("ramfs".to_owned()),
        _ => Suitability::Durable,
    }
}

pub(super) struct RealFile {
    file: File,
}

impl RealFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A reader may lack the right to write; the writer finds out when it first writes.
        let file =
            OpenOptions::new().read(true).write(true).open(path).or_else(|error| match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => File::open(path),
                _ => Err(error),
            })?;
        Ok(Self { file })
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], at + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(self, bytes),
            other => Ok(other?),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn identity(&self) -> io::Result<Directory> {
        Ok(Directory::from_metadata(&self.file.metadata()?))
    }
}

fn write_zeros(file: &RealFile, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let part = usize::try_from((bytes - at).min(zeros.len() as u64)).expect("at most the buffer");
        file.write_at(at, &zeros[..part])?;
        at += part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_number() {
        assert_eq!(suitability_of(0x6969), Suitability::Network("nfs".to_owned()));
        assert_eq!(suitability_of(0xFF53_4D42), Suitability::Network("smb".to_owned()));
        assert_eq!(suitability_of(0xEF53), Suitability::Durable, "ext4");
        assert_eq!(suitability_of(0x0102_1994), Suitability::Lossy("tmpfs".to_owned()));
    }

    #[test]
    fn a_second_lock_is_refused_with_the_first_ones_process() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path().join("a/b"));
        let guard = disk.lock().map_err(|_| "refused").unwrap();
        assert!(matches!(disk.lock(), Err(LockError::Held(Some(pid))) if pid == std::process::id()));
        drop(guard);
        assert!(disk.lock().is_ok());
    }
}
