//! A directory in memory that can lose power, break and fill up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use leasehold_journal::Directory;

use super::{Disk, DiskFile, LockError, Suitability};
use crate::sector;

/// A directory in memory. Clones share it.
///
/// It keeps what a reader sees apart from what a power cut leaves: [`MemoryDisk::power_cut`] gives a disk on which any
/// subset of the sectors and directory changes that were never synced has survived.
#[derive(Clone)]
pub struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
}

/// A step that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A file was made.
    Create,
    /// A file was written.
    Write,
    /// A file was synced.
    Sync,
    /// Room was taken.
    Allocate,
    /// A file was renamed.
    Rename,
    /// A file was deleted.
    Remove,
    /// The directory was synced.
    SyncDir,
}

/// How a step fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// With this error, and nothing has happened. After a failed sync what was written stays visible, but no later sync
    /// writes it: that is how Linux behaves.
    Error(io::ErrorKind),
    /// The machine stops in the middle: the step was begun, and this one and all after it fail.
    Stop,
}

#[derive(Clone, Default)]
struct File {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: BTreeSet<usize>,
}

#[derive(Clone)]
enum DirOp {
    Link { name: String, file: u64 },
    Rename { from: String, to: String, file: u64 },
    Unlink { name: String, file: u64 },
}

#[derive(Clone)]
struct Inner {
    files: BTreeMap<u64, File>,
    live: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    unsynced: Vec<DirOp>,
    locked: bool,
    suitability: Suitability,
    identity: u64,
    capacity: Option<u64>,
    ops: Vec<Op>,
    faults: BTreeMap<usize, Fault>,
    stopped: bool,
    deaf: bool,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty directory.
    pub fn new() -> Self {
        Self::from_inner(Inner {
            files: BTreeMap::new(),
            live: BTreeMap::new(),
            durable: BTreeMap::new(),
            unsynced: Vec::new(),
            locked: false,
            suitability: Suitability::Durable,
            identity: 1,
            capacity: None,
            ops: Vec::new(),
            faults: BTreeMap::new(),
            stopped: false,
            deaf: false,
        })
    }

    fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock_inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no code panics while it holds the disk")
    }

    /// What a power cut leaves: `survives` is asked once for every sector and every directory change never synced.
    #[must_use]
    pub fn power_cut(&self, survives: &mut dyn FnMut() -> bool) -> Self {
        let mut inner = self.lock_inner().clone();
        let mut names = inner.durable.clone();
        for op in inner.unsynced.iter().filter(|_| survives()) {
            op.apply(&mut names);
        }
        let kept: BTreeSet<u64> = names.values().copied().collect();
        inner.files.retain(|id, _| kept.contains(id));
        inner.files.values_mut().for_each(|file| file.cut(survives));
        Self::from_inner(inner.restarted(names))
    }

    /// What the end of the process alone leaves: everything, as it is seen.
    #[must_use]
    pub fn process_end(&self) -> Self {
        let mut inner = self.lock_inner().clone();
        (inner.locked, inner.stopped) = (false, false);
        inner.ops.clear();
        inner.faults.clear();
        Self::from_inner(inner)
    }

    /// The same bytes in another directory, as a backup copied back.
    #[must_use]
    pub fn copied(&self) -> Self {
        let copy = self.process_end();
        copy.lock_inner().identity += 1;
        copy
    }

    /// Makes step number `op` (counted from 0, see [`MemoryDisk::ops`]) fail.
    pub fn fail(&self, op: usize, fault: Fault) {
        self.lock_inner().faults.insert(op, fault);
    }

    /// The steps taken until now.
    pub fn ops(&self) -> Vec<Op> {
        self.lock_inner().ops.clone()
    }

    /// Bounds the bytes of all files together; `None` for no bound.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_inner().capacity = bytes;
    }

    /// The bytes of all files together.
    pub fn used(&self) -> u64 {
        self.lock_inner().used()
    }

    /// Makes the disk answer that it has synced without doing so, to show that tests notice.
    pub fn ignore_syncs(&self) {
        self.lock_inner().deaf = true;
    }

    /// Sets what the file system says of itself.
    pub fn set_suitability(&self, suitability: Suitability) {
        self.lock_inner().suitability = suitability;
    }

    /// The bytes of a file, as seen.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let inner = self.lock_inner();
        inner.live.get(name).map(|id| inner.files[id].live.clone())
    }

    /// Changes one byte of a file behind everybody's back.
    ///
    /// # Panics
    /// There is no such byte.
    pub fn flip(&self, name: &str, at: usize, mask: u8) {
        let mut inner = self.lock_inner();
        let id = inner.live[name];
        let file = inner.files.get_mut(&id).expect("a name has a file");
        file.live[at] ^= mask;
        file.durable[at] ^= mask;
    }

    /// Cuts a file off behind everybody's back.
    ///
    /// # Panics
    /// There is no such file.
    pub fn cut_off(&self, name: &str, bytes: usize) {
        let mut inner = self.lock_inner();
        let id = inner.live[name];
        let file = inner.files.get_mut(&id).expect("a name has a file");
        file.live.truncate(bytes);
        file.durable.truncate(bytes);
    }
}

impl DirOp {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        let is = |names: &BTreeMap<String, u64>, name: &String, file: &u64| names.get(name) == Some(file);
        match self {
            Self::Link { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Rename { from, to, file } => {
                if is(names, from, file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
            Self::Unlink { name, file } => {
                if is(names, name, file) {
                    names.remove(name);
                }
            }
        }
    }
}

impl File {
    fn sync(&mut self) {
        grow(&mut self.durable, self.live.len());
        for number in std::mem::take(&mut self.unsynced) {
            let end = ((number + 1) * sector::BYTES).min(self.live.len());
            self.durable[number * sector::BYTES..end]
                .copy_from_slice(&self.live[number * sector::BYTES..end]);
        }
    }

    fn cut(&mut self, survives: &mut dyn FnMut() -> bool) {
        let unsynced = std::mem::take(&mut self.unsynced);
        for number in unsynced.into_iter().filter(|_| survives()) {
            let start = number * sector::BYTES;
            let end = (start + sector::BYTES).min(self.live.len());
            grow(&mut self.durable, end);
            self.durable[start..end].copy_from_slice(&self.live[start..end]);
        }
        self.live.clone_from(&self.durable);
    }
}

/// Appends zeros until there are `len` bytes. In one piece: the tests do this a million times, unoptimized.
fn grow(bytes: &mut Vec<u8>, len: usize) {
    bytes.extend_from_slice(&vec![0; len.saturating_sub(bytes.len())]);
}

impl Inner {
    fn restarted(mut self, names: BTreeMap<String, u64>) -> Self {
        (self.locked, self.stopped) = (false, false);
        (self.live, self.durable) = (names.clone(), names);
        self.unsynced.clear();
        self.ops.clear();
        self.faults.clear();
        self
    }

    fn used(&self) -> u64 {
        self.live.values().map(|id| self.files[id].live.len() as u64).sum()
    }

    /// Counts a step; whether it takes effect, and the error it ends with.
    fn step(&mut self, op: Op) -> (bool, io::Result<()>) {
        let stopped = || Err(io::Error::other("the machine has stopped"));
        if self.stopped {
            return (false, stopped());
        }
        self.ops.push(op);
        match self.faults.get(&(self.ops.len() - 1)) {
            None => (!self.deaf || !matches!(op, Op::Sync | Op::SyncDir), Ok(())),
            Some(Fault::Error(kind)) => (false, Err((*kind).into())),
            Some(Fault::Stop) => {
                self.stopped = true;
                // Data and changes begun may survive a power cut; a sync that did not end promises nothing.
                (!matches!(op, Op::Sync | Op::SyncDir), stopped())
            }
        }
    }

    fn file_named(&self, name: &str) -> io::Result<u64> {
        self.live.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, op: Op, change: DirOp) -> io::Result<()> {
        let (effective, outcome) = self.step(op);
        if effective {
            change.apply(&mut self.live);
            self.unsynced.push(change);
        }
        outcome
    }

    fn write(&mut self, id: u64, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).expect("small");
        let end = at + bytes.len();
        let grows = end.saturating_sub(self.files[&id].live.len()) as u64;
        if self.capacity.is_some_and(|capacity| grows > 0 && self.used() + grows > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.files.get_mut(&id).expect("an open file");
        grow(&mut file.live, end);
        file.live[at..end].copy_from_slice(bytes);
        file.unsynced.extend(at / sector::BYTES..end.div_ceil(sector::BYTES));
        Ok(())
    }
}

/// Gives the lock back.
struct Unlock(MemoryDisk);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.lock_inner().locked = false;
    }
}

impl Disk for MemoryDisk {
    fn lock(&self) -> Result<Box<dyn Send + Sync>, LockError> {
        let mut inner = self.lock_inner();
        if inner.locked {
            return Err(LockError::Held(None));
        }
        inner.locked = true;
        Ok(Box::new(Unlock(self.clone())))
    }

    fn suitability(&self) -> io::Result<Suitability> {
        Ok(self.lock_inner().suitability.clone())
    }

    fn identity(&self) -> io::Result<Directory> {
        Ok(Directory { host: None, inode: self.lock_inner().identity, born: None })
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.lock_inner().live.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut inner = self.lock_inner();
        if inner.live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = inner.files.keys().next_back().map_or(1, |last| last + 1);
        inner.files.insert(id, File::default());
        inner.change(Op::Create, DirOp::Link { name: name.to_owned(), file: id })?;
        Ok(Box::new(MemoryFile { disk: self.clone(), id }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let id = self.lock_inner().file_named(name)?;
        Ok(Box::new(MemoryFile { disk: self.clone(), id }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock_inner();
        let file = inner.file_named(from)?;
        inner.change(Op::Rename, DirOp::Rename { from: from.to_owned(), to: to.to_owned(), file })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.lock_inner();
        let file = inner.file_named(name)?;
        inner.change(Op::Remove, DirOp::Unlink { name: name.to_owned(), file })
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.lock_inner();
        let (effective, outcome) = inner.step(Op::SyncDir);
        if effective {
            inner.durable = inner.live.clone();
            inner.unsynced.clear();
        }
        outcome
    }

    fn path(&self, name: &str) -> String {
        name.to_owned()
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    id: u64,
}

impl DiskFile for MemoryFile {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = self.disk.lock_inner();
        let live = &inner.files[&self.id].live;
        let start = usize::try_from(at).expect("small").min(live.len());
        let count = buffer.len().min(live.len() - start);
        buffer[..count].copy_from_slice(&live[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.disk.lock_inner();
        let (effective, outcome) = inner.step(Op::Write);
        if effective {
            inner.write(self.id, at, bytes)?;
        }
        outcome
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock_inner();
        let (effective, outcome) = inner.step(Op::Sync);
        let failed = outcome.is_err() && !inner.stopped;
        let file = inner.files.get_mut(&self.id).expect("an open file");
        if effective {
            file.sync();
        } else if failed {
            file.unsynced.clear();
        }
        outcome
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.lock_inner();
        let (effective, outcome) = inner.step(Op::Allocate);
        if effective {
            inner.write(self.id, 0, &vec![0; usize::try_from(bytes).expect("small")])?;
        }
        outcome
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.lock_inner().files[&self.id].live.len() as u64)
    }

    fn identity(&self) -> io::Result<Directory> {
        Ok(Directory { host: None, inode: self.id, born: None })
    }
}
