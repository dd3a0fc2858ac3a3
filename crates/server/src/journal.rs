//! Which journal the settings name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_journal_wal::{WalConfig, WalJournal};

use crate::config::JournalConfig;

/// The journal of these settings; nothing is opened yet.
pub(crate) fn chosen(journal: &JournalConfig, data: &Path) -> Arc<dyn Journal> {
    match journal {
        JournalConfig::Embedded => Arc::new(WalJournal::new(WalConfig::new(embedded_dir(data)))),
        JournalConfig::Etcd(journal) => Arc::new(journal.clone()),
        JournalConfig::Postgres(journal) => Arc::new(journal.clone()),
        JournalConfig::Redis(journal) => Arc::new(journal.clone()),
        JournalConfig::Zookeeper(journal) => Arc::new(journal.clone()),
    }
}

/// The witness lies beside the journal, not in it: it must survive when the journal is replaced.
pub(crate) fn embedded_dir(data: &Path) -> PathBuf {
    data.join("journal")
}
