//! The lock on a data directory: of one node at a time, also where the journal is elsewhere.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use leasehold_journal::OpenError;

/// The lock's name in the data directory.
const FILE: &str = "lock";

/// Held as long as this lives, and given back by the system when the process ends, however it ends. So whoever has it
/// knows that every earlier node of this directory is gone.
#[derive(Debug)]
pub(crate) struct DataLock {
    _file: File,
}

impl DataLock {
    /// Takes the lock; makes the directory if need be.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if another node has the directory; [`OpenError::Unsuitable`] if it cannot be locked.
    pub(crate) fn take(data_dir: &Path) -> Result<Self, OpenError> {
        let path = data_dir.join(FILE);
        let unsuitable = |error| OpenError::Unsuitable(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(data_dir).map_err(unsuitable)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(unsuitable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(OpenError::InUse(format!("another node has the data directory {}", data_dir.display())))
            }
            Err(TryLockError::Error(error)) => Err(unsuitable(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let held = DataLock::take(&data).unwrap();
        assert!(matches!(DataLock::take(&data), Err(OpenError::InUse(_))));
        drop(held);
        assert!(DataLock::take(&data).is_ok());
    }
}
