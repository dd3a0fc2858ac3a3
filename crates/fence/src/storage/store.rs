//! The fence, the intents and the files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use leasehold_types::ResourceName;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use rustix::io::Errno;

use super::files::Files;
use super::path::FilePath;
use crate::http::Failure;
use crate::rollout::Timer;
use crate::sql::{Dialect, FENCE_TABLE, ddl};
use crate::{Ask, Fence, FenceError, Grant, Kind, Rejection, sqlite};

/// What has been asked for and may not be in its file yet, and who guards which file.
const TABLES: &str = "\
CREATE TABLE storage_file (
    path   TEXT NOT NULL PRIMARY KEY,
    guard  TEXT NOT NULL, -- the lock that guards it: the one of its first write
    length INTEGER NOT NULL -- what is acknowledged; bytes behind it are none of ours
) WITHOUT ROWID;
CREATE TABLE storage_intent (
    one    INTEGER PRIMARY KEY CHECK (one = 1), -- the last write: there is one at most
    path   TEXT NOT NULL,
    change TEXT NOT NULL CHECK (change IN ('APPEND', 'PUT')),
    at     INTEGER NOT NULL, -- where its bytes begin
    bytes  BLOB NOT NULL
);";

/// What to do with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Add to its end.
    Append,
    /// Replace it.
    Put,
}

impl Change {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Put => "PUT",
        }
    }
}

/// One write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Who asks.
    pub ask: Ask,
    /// Which file.
    pub path: FilePath,
    /// What to do with it.
    pub change: Change,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// `false`: this very step was applied before, and nothing was done now.
    pub applied: bool,
    /// The length of the file.
    pub length: u64,
}

/// What can come of asking.
pub type Error = FenceError<Failure>;

/// Files behind a fence, in one directory that belongs to this process.
///
/// A write is first committed to the database, together with the advance of the fence: who, where, which bytes. Then
/// it is done to the file, at a place that was fixed by the commit, so that doing it again after a crash changes
/// nothing. It is acknowledged after both.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    files: Files,
    /// Whether the intent in the database is known to be in its file.
    done: bool,
    /// How long the fence took for the last ask, if it came to that.
    check_took: Option<Duration>,
    _lock: File,
}

impl Store {
    /// Opens or makes a storage in this directory, and finishes what a crash interrupted.
    ///
    /// # Errors
    /// The directory is in use, or cannot be read and written.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let (files, state) = (directory.join("files"), directory.join("state"));
        fs::create_dir_all(&files)?;
        fs::create_dir_all(&state)?;
        let lock = OpenOptions::new().create(true).append(true).open(state.join("lock"))?;
        lock.try_lock().map_err(|_| "another process uses this directory")?;
        let connection = Connection::open(state.join("storage.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        make(&connection)?;
        let files = Files::open(&files, &state)?;
        let mut store = Self { connection, files, done: false, check_took: None, _lock: lock };
        store.finish()?;
        Ok(store)
    }

    /// Checks, commits, writes.
    ///
    /// # Errors
    /// Rejected: nothing is written. Store: before the commit nothing is written; after it the write is done before
    /// the next one. A retry by step is applied once.
    pub fn write(&mut self, write: &Write) -> Result<Written, Error> {
        self.check_took = None;
        self.finish().map_err(FenceError::Store)?;
        self.files.prepare(&write.path).map_err(|error| FenceError::Store(NoFile(error).into()))?;
        let fence = fence_of(write.ask.grant());
        match self.commit(&fence, write) {
            Ok(length) => {
                self.finish().map_err(FenceError::Store)?;
                Ok(Written { applied: true, length })
            }
            Err(FenceError::Rejected(Rejection::AlreadyApplied { .. })) => {
                let length = self.length(&write.path).map_err(store)?.unwrap_or(0);
                Ok(Written { applied: false, length })
            }
            Err(error) => Err(error),
        }
    }

    /// Raises the maximum before the first read.
    ///
    /// # Errors
    /// Rejected: the lease is lost.
    pub fn claim(&mut self, grant: &Grant) -> Result<(), Error> {
        let timer = Timer::start();
        let claimed = check_kind(&self.connection, grant).and_then(|()| {
            sqlite::claim(&self.connection, &fence_of(grant), grant).map_err(FenceError::boxed)
        });
        self.check_took = Some(timer.elapsed());
        claimed
    }

    /// How long the fence took for the last write or claim; the write itself is not in it.
    pub(super) fn check_took(&self) -> Option<Duration> {
        self.check_took
    }

    /// The highest token of a resource and the number of its writes.
    ///
    /// # Errors
    /// Store.
    pub fn resource(&self, resource: &ResourceName) -> Result<Option<(u64, u64)>, Error> {
        let sql =
            format!("SELECT token, writes FROM {FENCE_TABLE} WHERE name = ?1 ORDER BY token DESC LIMIT 1");
        let numbers = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.connection.query_row(&sql, [resource.as_str()], numbers).optional().map_err(store)
    }

    /// What was acknowledged of a file; `None`: there is none.
    ///
    /// # Errors
    /// Store.
    pub fn read(&mut self, path: &FilePath) -> Result<Option<Vec<u8>>, Error> {
        self.finish().map_err(FenceError::Store)?;
        let Some(length) = self.length(path).map_err(store)? else { return Ok(None) };
        self.files.read(path, length).map(Some).map_err(|error| FenceError::Store(error.into()))
    }

    /// Advance and intent, in one transaction; the length of the file after it.
    fn commit(&mut self, fence: &Fence, write: &Write) -> Result<u64, Error> {
        let immediate = TransactionBehavior::Immediate;
        let tx = self.connection.transaction_with_behavior(immediate).map_err(store)?;
        let timer = Timer::start();
        let admitted = check_kind(&tx, write.ask.grant())
            .and_then(|()| sqlite::admit(&tx, fence, &write.ask).map_err(FenceError::boxed));
        self.check_took = Some(timer.elapsed());
        let admitted = admitted?;
        let before = guarded_length(&admitted, fence, &write.path)?;
        let at = if write.change == Change::Append { before } else { 0 };
        let length = at + write.bytes.len() as u64;
        let intent = params![write.path.as_str(), write.change.as_str(), at, write.bytes];
        let sql =
            "INSERT OR REPLACE INTO storage_intent (one, path, change, at, bytes) VALUES (1, ?1, ?2, ?3, ?4)";
        admitted.execute(sql, intent).map_err(store)?;
        let sql = "INSERT INTO storage_file (path, guard, length) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (path) DO UPDATE SET length = excluded.length";
        admitted.execute(sql, params![write.path.as_str(), fence.guard().as_str(), length]).map_err(store)?;
        // Set before: if the commit's outcome is unknown, what the database has then is done.
        self.done = false;
        tx.commit().map_err(store)?;
        Ok(length)
    }

    /// Does the last committed write to its file, unless that is known to be done. Doing it twice is doing it once.
    fn finish(&mut self) -> Result<(), Failure> {
        if self.done {
            return Ok(());
        }
        let sql = "SELECT path, change, at, bytes FROM storage_intent";
        let intent = self.connection.query_row(sql, [], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, u64>(2)?,
                row.get::<_, Vec<u8>>(3)?,
            ))
        });
        if let Some((path, change, at, bytes)) = intent.optional()? {
            let path = FilePath::parse(&path)?;
            match change.as_str() {
                "PUT" => self.files.replace(&path, &bytes)?,
                _ => self.files.write_at(&path, at, &bytes)?,
            }
        }
        self.done = true;
        Ok(())
    }

    fn length(&self, path: &FilePath) -> rusqlite::Result<Option<u64>> {
        let sql = "SELECT length FROM storage_file WHERE path = ?1";
        self.connection.query_row(sql, [path.as_str()], |row| row.get(0)).optional()
    }
}

/// No file can be at this path.
#[derive(Debug, thiserror::Error)]
#[error("no file can be written there: {0}")]
pub(super) struct NoFile(io::Error);

impl NoFile {
    /// Whether the path is at fault, and not the disk.
    pub(super) fn is_the_callers(&self) -> bool {
        let known = [Errno::LOOP, Errno::NAMETOOLONG, Errno::NOTDIR, Errno::ISDIR];
        Errno::from_io_error(&self.0).is_none_or(|errno| known.contains(&errno))
    }
}

fn make(connection: &Connection) -> Result<(), Failure> {
    let sql = "SELECT 1 FROM sqlite_master WHERE name = 'storage_intent'";
    if connection.query_row(sql, [], |_| Ok(())).optional()?.is_none() {
        let base = ddl::base(Dialect::Sqlite, None)?.up_script();
        connection.execute_batch(&format!("BEGIN IMMEDIATE;\n{base}\n{TABLES}\nCOMMIT;"))?;
    }
    Ok(())
}

/// The fence of a grant's resource: a semaphore's has one maximum for each permit.
fn fence_of(grant: &Grant) -> Fence {
    let fence = Fence::of(grant.resource());
    if matches!(grant.kind(), Kind::Permit(_)) { fence.each_permit() } else { fence }
}

/// A resource is held exclusively or by permits, as its first grant was: tokens of the other kind do not count.
fn check_kind(connection: &Connection, grant: &Grant) -> Result<(), Error> {
    let sql = format!("SELECT 1 FROM {FENCE_TABLE} WHERE name = ?1 AND (permit = -1) <> (?2 = -1) LIMIT 1");
    let values = params![grant.resource().as_str(), grant.row_number()];
    match connection.query_row(&sql, values, |_| Ok(())).optional().map_err(store)? {
        None => Ok(()),
        Some(()) => {
            let (presented, guard) = (grant.resource().clone(), grant.resource().clone());
            Err(FenceError::Rejected(Rejection::WrongScope { presented, guard }))
        }
    }
}

/// The length of the file, if it is guarded by this fence's lock or by none yet.
fn guarded_length(tx: &Transaction<'_>, fence: &Fence, path: &FilePath) -> Result<u64, Error> {
    let sql = "SELECT guard, length FROM storage_file WHERE path = ?1";
    let both = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
    match tx.query_row(sql, [path.as_str()], both).optional().map_err(store)? {
        None => Ok(0),
        Some((guard, length)) if guard == fence.guard().as_str() => Ok(length),
        Some((guard, _)) => {
            let guard = ResourceName::new(&guard).map_err(|_| FenceError::Corrupt(guard))?;
            Err(FenceError::Rejected(Rejection::WrongScope { presented: fence.guard().clone(), guard }))
        }
    }
}

fn store(error: rusqlite::Error) -> Error {
    FenceError::Store(error.into())
}
