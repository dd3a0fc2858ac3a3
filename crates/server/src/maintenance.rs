//! What operators do to a journal: back it up, restore it, recover it, copy it to another engine. A [`Backup`] works beside
//! a running server; the others need the journal for themselves.

mod backup;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_core::Operator;
use leasehold_journal::archive::{Archive, ArchiveError};
use leasehold_journal::{Claim, ImportError, Journal, OpenError, ReadError, Reader};
use leasehold_node::maintenance::{Recovered, Unserved, recover_unserved};
use leasehold_node::{RealClock, StartError};
use leasehold_types::ids::random;
use leasehold_types::{ClusterId, Epoch, Nonce};

use crate::config::JournalConfig;
use crate::error::{open_hint, start_hint};
use crate::journal::{chosen, embedded_dir};

pub use backup::Backup;

/// A journal, and the data directory with the witness of the node that serves it.
pub struct Site {
    journal: Arc<dyn Journal>,
    data: PathBuf,
    is_remote: bool,
}

impl Site {
    /// The journal of these settings; nothing is opened yet.
    pub fn new(data: &Path, journal: &JournalConfig) -> Self {
        Self { journal: chosen(journal, data), data: data.to_owned(), is_remote: journal.is_remote() }
    }

    /// The embedded journal of a data directory.
    pub fn embedded(data: &Path) -> Self {
        Self::new(data, &JournalConfig::Embedded)
    }

    /// A look at a journal that must be there: opening one would found it.
    async fn existing(&self) -> Result<Box<dyn Reader>, MaintenanceError> {
        let missing = |place: String| Err(MaintenanceError::NoJournal(place));
        if !self.is_remote && !embedded_dir(&self.data).is_dir() {
            return missing(self.data.display().to_string());
        }
        self.journal.reach().await?;
        let mut reader = self.journal.reader().await?;
        match reader.head().await {
            Err(ReadError::NotFounded) => missing(self.journal.kind().to_owned()),
            Err(ReadError::Unavailable(why)) if self.is_remote => Err(OpenError::Unavailable(why).into()),
            // What else is wrong with it is told, or mended, by what was asked for.
            _ => Ok(reader),
        }
    }

    /// Refuses a journal that is not to be filled, before anything is done to the one that it would be filled from.
    /// Filling it looks again.
    async fn must_be_empty(&self) -> Result<(), MaintenanceError> {
        match self.existing().await {
            Ok(_) => Err(MaintenanceError::Copy(ImportError::NotEmpty(self.place()))),
            Err(MaintenanceError::NoJournal(_)) => Ok(()),
            // A directory without a journal, or with one that was filled in part.
            Err(MaintenanceError::Open(OpenError::Unavailable(_))) if !self.is_remote => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn place(&self) -> String {
        match self.is_remote {
            true => "there is a journal of this name".to_owned(),
            false => format!("there is a journal in {}", self.data.display()),
        }
    }

    /// Keeps nodes off the data directory while a journal is filled, from the journals named here.
    fn unserved<'a>(&'a self, others: &[&'a Self]) -> Result<Unserved<'a>, MaintenanceError> {
        let journals: Vec<_> = others.iter().chain([&self]).map(|site| &*site.journal).collect();
        Ok(Unserved::take(&self.data, &journals)?)
    }

    /// The last step after filling. The mark that says "filled, not yet recovered" was set by the filling itself, so it
    /// is no loss.
    async fn raise_filled(
        &self,
        unserved: &Unserved<'_>,
        operator: Operator,
    ) -> Result<Recovered, MaintenanceError> {
        let recovered = recover_unserved(&*self.journal, unserved, operator, None, &RealClock).await?;
        Ok(Recovered { loss: None, ..recovered })
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("journal", &self.journal.kind()).field("data", &self.data).finish()
    }
}

/// Why maintenance failed. Nothing was changed, except where the message says so.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The backup cannot be read.
    #[error("cannot read the backup: {0}")]
    Archive(String),
    /// The backup cannot be made.
    #[error("cannot make the backup: {0}")]
    Backup(#[from] ArchiveError),
    /// The journal cannot be filled from the backup.
    #[error("cannot restore: {0}")]
    Restore(ImportError),
    /// The journal cannot be filled from the other.
    #[error("cannot copy: {0}")]
    Copy(ImportError),
    /// The journal cannot be recovered.
    #[error("cannot recover: {0}")]
    Recover(#[from] StartError),
    /// The backup cannot be noted in the audit log.
    #[error("cannot note the backup: {0}")]
    Note(StartError),
    /// The node that was asked to note the backup serves another journal.
    #[error("the journal is cluster {journal}, but the server that was asked serves cluster {served}")]
    OtherCluster {
        /// Of the journal that is to be copied.
        journal: ClusterId,
        /// Of the one that is served.
        served: ClusterId,
    },
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
                Some("restore into a directory that does not exist yet, or under another --cluster")
            }
            Self::Copy(ImportError::NotEmpty(_)) => {
                Some("name the copy otherwise with --to-cluster, or make an embedded one in another --data")
            }
            Self::NoJournal(_) => Some("name it with --data, or with --journal and --cluster"),
            Self::OtherCluster { .. } => {
                Some("name a node of this journal with --server, or the journal of that node")
            }
            Self::Recover(error) | Self::Note(error) => start_hint(error),
            Self::Open(error) => open_hint(error),
            Self::Restore(ImportError::Target(error)) | Self::Copy(ImportError::Target(error)) => {
                open_hint(error)
            }
            Self::Backup(_) | Self::Archive(_) | Self::Restore(_) | Self::Copy(_) => None,
        }
    }

    /// Whether the engine does not let us in: somebody has to mend that first.
    pub const fn is_refused(&self) -> bool {
        matches!(
            self,
            Self::Open(OpenError::Refused(_))
                | Self::Recover(StartError::Open(OpenError::Refused(_)))
                | Self::Note(StartError::Open(OpenError::Refused(_)))
                | Self::Restore(ImportError::Target(OpenError::Refused(_)))
                | Self::Copy(ImportError::Target(OpenError::Refused(_)))
        )
    }

    /// Whether the engine did not answer: nothing is known to be wrong, and asking again may help.
    pub const fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Open(OpenError::Unavailable(_))
                | Self::Recover(StartError::Open(OpenError::Unavailable(_)))
                | Self::Note(StartError::Open(OpenError::Unavailable(_)))
                | Self::Restore(ImportError::Target(OpenError::Unavailable(_)))
                | Self::Copy(ImportError::Target(OpenError::Unavailable(_)))
        )
    }
}

/// What is wrong with a backup, which is a file and no journal.
fn unreadable(error: OpenError) -> MaintenanceError {
    MaintenanceError::Archive(match error {
        OpenError::Unavailable(why) => why,
        OpenError::Corrupt { place, detail } => format!("{place}: {detail}"),
        OpenError::TooNew(detail) => format!("it was written by a newer version: {detail}"),
        other => other.to_string(),
    })
}

/// What was done stands before the reason: a recovery is the last step of it, and the audit log has that as `RECOVER`. A word
/// of its own for it would be a new format of facts.
fn audited(what: String, operator: Operator) -> Operator {
    Operator { reason: format!("{what}: {}", operator.reason).into(), ..operator }
}

/// Fills an empty journal from a backup, then recovers it: what was granted after the backup was made is lost, so
/// generation, epoch and tokens go above everything that could have been given out.
///
/// # Errors
/// See [`MaintenanceError`].
pub async fn restore(file: &Path, site: &Site, operator: Operator) -> Result<Recovered, MaintenanceError> {
    let mut archive = Archive::open(file).map_err(unreadable)?;
    let unserved = site.unserved(&[])?;
    site.journal.import(&mut archive).await.map_err(MaintenanceError::Restore)?;
    let what = format!("restore of backup {} into {}", file.display(), site.journal.place());
    site.raise_filled(&unserved, audited(what, operator)).await
}

/// Accepts what is left of a damaged, regressed or copied journal, and raises generation, epoch and tokens; tokens to
/// `token_floor` at least, where somebody knows of larger ones than journal and witness do.
///
/// # Errors
/// See [`MaintenanceError`]; asking again is safe.
pub async fn recover(
    site: &Site,
    operator: Operator,
    token_floor: Option<u64>,
) -> Result<Recovered, MaintenanceError> {
    site.existing().await?;
    let (journal, data) = (&*site.journal, &site.data);
    let recovered = leasehold_node::maintenance::recover(journal, data, operator, token_floor, &RealClock);
    Ok(recovered.await?)
}

/// Fills an empty journal from another one, then recovers it, so that generation, epoch and tokens are above everything
/// that the old one could still give out. The old one is claimed first: whoever serves it on a remote engine is fenced,
/// and an embedded one that is served is refused. It stays as it was, and must not be served again. Whatever else stands in the
/// way is found out before that: a node of this data directory, a journal that is not empty.
///
/// # Errors
/// See [`MaintenanceError`].
pub async fn copy(from: &Site, to: &Site, operator: Operator) -> Result<Recovered, MaintenanceError> {
    from.existing().await?;
    to.must_be_empty().await?;
    let unserved = to.unserved(&[from])?;
    let claim = Claim {
        nonce: Nonce::from_bytes(random()),
        new_cluster: ClusterId::from_bytes(random()),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let mut opened = from.journal.open(claim).await?;
    to.journal.import(&mut *opened.reader).await.map_err(MaintenanceError::Copy)?;
    let what = format!("copy from {} to {}", from.journal.place(), to.journal.place());
    to.raise_filled(&unserved, audited(what, operator)).await
}
