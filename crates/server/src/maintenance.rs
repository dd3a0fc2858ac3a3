//! What operators do to a data directory: back it up, restore it, recover it. `backup` works beside a running server;
//! the other two need the directory for themselves.

use std::path::Path;

use leasehold_core::Operator;
use leasehold_journal::archive::{Archive, ArchiveError, Summary, write_archive};
use leasehold_journal::{ImportError, Journal, OpenError};
use leasehold_node::maintenance::Recovered;
use leasehold_node::{RealClock, StartError};

use crate::error::start_hint;
use crate::journal::{Embedded, embedded};

/// Why maintenance failed. Nothing was changed, except where the message says so.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The journal or the backup cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The backup cannot be made.
    #[error("cannot make the backup: {0}")]
    Backup(#[from] ArchiveError),
    /// The directory cannot be filled.
    #[error("cannot restore: {0}")]
    Restore(#[from] ImportError),
    /// The journal cannot be recovered.
    #[error("cannot recover: {0}")]
    Recover(#[from] StartError),
    /// There is no journal where one should be.
    #[error("there is no journal in {0}")]
    NoJournal(String),
}

impl MaintenanceError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(OpenError::InUse(_)) => Some("stop the server that uses the directory first"),
            Self::Restore(ImportError::NotEmpty(_)) => {
                Some("restore into a directory that does not exist yet")
            }
            Self::NoJournal(_) => Some("name the data directory with --data"),
            Self::Recover(error) => start_hint(error),
            Self::Open(_) | Self::Backup(_) | Self::Restore(_) => None,
        }
    }
}

fn existing(data: &Path) -> Result<Embedded, MaintenanceError> {
    if crate::journal::embedded_dir(data).is_dir() {
        Ok(embedded(data))
    } else {
        Err(MaintenanceError::NoJournal(data.display().to_string()))
    }
}

/// Writes everything committed into a new file.
///
/// # Errors
/// See [`MaintenanceError`]; no file is left behind.
pub async fn backup(data: &Path, file: &Path) -> Result<Summary, MaintenanceError> {
    let mut reader = existing(data)?.reader().await?;
    Ok(write_archive(&mut *reader, file).await?)
}

/// Fills an empty data directory from a backup, then recovers it: what was granted after the backup was made is lost,
/// so generation, epoch and tokens go above everything that could have been given out.
///
/// # Errors
/// See [`MaintenanceError`].
pub async fn restore(file: &Path, data: &Path, operator: Operator) -> Result<Recovered, MaintenanceError> {
    let mut archive = Archive::open(file)?;
    let journal = embedded(data);
    journal.import(&mut archive).await?;
    Ok(leasehold_node::maintenance::recover(&journal, data, operator, None, &RealClock).await?)
}

/// Accepts what is left of a damaged, regressed or copied journal, and raises generation, epoch and tokens.
///
/// # Errors
/// See [`MaintenanceError`]; asking again is safe.
pub async fn recover(data: &Path, operator: Operator) -> Result<Recovered, MaintenanceError> {
    let journal = existing(data)?;
    Ok(leasehold_node::maintenance::recover(&journal, data, operator, None, &RealClock).await?)
}
