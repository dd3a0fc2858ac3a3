//! A backup: looked at first, then noted in the audit log, then taken, so that the copy holds its own entry.

use std::path::Path;

use leasehold_core::Operator;
use leasehold_journal::archive::{ArchiveError, Summary, must_be_new, write_archive};
use leasehold_node::RealClock;
use leasehold_node::maintenance::{BackupNote, note_backup};
use leasehold_types::ClusterId;

use super::{MaintenanceError, Site};

/// A backup that is about to be made: the journal is there, and the file is not.
#[derive(Debug)]
pub struct Backup<'a> {
    site: &'a Site,
    file: &'a Path,
    cluster: ClusterId,
}

impl<'a> Backup<'a> {
    /// Looks at the journal and at the place of the file; nothing is changed.
    ///
    /// # Errors
    /// See [`MaintenanceError`].
    pub async fn prepare(site: &'a Site, file: &'a Path) -> Result<Self, MaintenanceError> {
        let mut reader = site.existing().await?;
        must_be_new(file)?;
        let head = reader.head().await.map_err(ArchiveError::Read)?;
        Ok(Self { site, file, cluster: head.cluster })
    }

    /// Refuses a node that serves another journal: its audit log is not that of the copy.
    ///
    /// # Errors
    /// [`MaintenanceError::OtherCluster`].
    pub fn must_be_served_by(&self, served: ClusterId) -> Result<(), MaintenanceError> {
        match served == self.cluster {
            true => Ok(()),
            false => Err(MaintenanceError::OtherCluster { journal: self.cluster, served }),
        }
    }

    /// Notes the backup in a journal that no node serves. Needs the journal for itself: an embedded one that is served is
    /// refused, and whoever serves a remote one is fenced.
    ///
    /// # Errors
    /// See [`MaintenanceError`].
    pub async fn note_unserved(&self, operator: Operator) -> Result<BackupNote, MaintenanceError> {
        let noted = note_backup(&*self.site.journal, &self.site.data, operator, &RealClock).await;
        noted.map_err(MaintenanceError::Note)
    }

    /// Writes everything committed into the file.
    ///
    /// # Errors
    /// See [`MaintenanceError`]; no file is left behind.
    pub async fn take(self) -> Result<Summary, MaintenanceError> {
        let mut reader = self.site.existing().await?;
        let found = reader.head().await.map_err(ArchiveError::Read)?.cluster;
        if found != self.cluster {
            return Err(MaintenanceError::OtherCluster { journal: found, served: self.cluster });
        }
        Ok(write_archive(&mut *reader, self.file).await?)
    }
}
