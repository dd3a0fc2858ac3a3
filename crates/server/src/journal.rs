//! Which journal the settings name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_journal_wal::{WalConfig, WalJournal};

use crate::config::{Config, JournalConfig};

/// The embedded journal.
pub(crate) type Embedded = WalJournal;

/// The journal of these settings; nothing is opened yet.
pub(crate) fn chosen(config: &Config) -> Arc<dyn Journal> {
    match config.journal {
        JournalConfig::Embedded => Arc::new(embedded(&config.data)),
    }
}

/// The embedded journal of a data directory.
pub(crate) fn embedded(data: &Path) -> Embedded {
    WalJournal::new(WalConfig::new(embedded_dir(data)))
}

/// The witness lies beside the journal, not in it: it must survive when the journal is replaced.
pub(crate) fn embedded_dir(data: &Path) -> PathBuf {
    data.join("journal")
}
