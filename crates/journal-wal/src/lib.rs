//! The embedded journal: one directory, segments zero-filled in advance, one durable write for each batch.
//!
//! [`WalJournal`] implements the contract of `leasehold_journal` on a local file system. An exclusive lock on the
//! directory makes sure that there is one writer, so confirmations cost nothing. Damage is told from an unfinished write
//! by a checksum on every sector; nothing damaged is ever repaired silently.
//!
//! It replicates nothing, it runs on no network file system, and it does not know what the bytes mean.
//!
//! ```no_run
//! use leasehold_journal_wal::{WalConfig, WalJournal};
//!
//! let journal = WalJournal::new(WalConfig::new("leasehold-data/journal"));
//! ```
//!
//! The path of a batch: `writer` puts it into `sector`s of the active `segment`; `log` reads all of them when the journal
//! is opened (`open`); `snapshots` and `keeper` make old segments superfluous and delete them; `mend` is for `recover`
//! alone. Everything touches the disk through [`disk::Disk`], so that tests can cut its power.

mod config;
mod core;
mod detached;
pub mod disk;
mod identity;
mod import;
mod keeper;
mod log;
mod mend;
mod open;
mod reader;
mod sector;
mod segment;
mod snapshot;
mod snapshots;
mod writer;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use leasehold_journal::{Claim, ImportError, Journal, OpenError, Opened, Reader, Tail};

pub use config::{Background, WalConfig};

use crate::core::Core;
use crate::detached::Detached;
use crate::disk::{Disk, RealDisk};
use crate::keeper::Keeper;
use crate::reader::WalReader;
use crate::snapshots::WalSnapshots;
use crate::writer::WalWriter;

/// The embedded journal.
#[derive(Clone)]
pub struct WalJournal {
    disk: Arc<dyn Disk>,
    config: WalConfig,
    /// What is open here, so that readers need not look at the directory from outside.
    live: Arc<Mutex<Weak<Core>>>,
}

/// Held by the writer and the snapshot writer: when both are gone, the journal is closed.
pub(crate) struct Owner {
    /// Ends before the lock is given back.
    keeper: Keeper,
    _lock: Box<dyn Send + Sync>,
}

impl Owner {
    pub(crate) fn wake_keeper(&self) {
        self.keeper.wake();
    }
}

impl WalJournal {
    /// The journal in the directory of the settings.
    pub fn new(config: WalConfig) -> Self {
        let disk = Arc::new(RealDisk::new(&config.dir));
        Self::on(disk, config)
    }

    /// The journal on another disk, for tests.
    pub fn on(disk: Arc<dyn Disk>, config: WalConfig) -> Self {
        Self { disk, config, live: Arc::default() }
    }

    fn live(&self) -> Option<Arc<Core>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.upgrade().filter(|core| !core.state().closed)
    }
}

#[async_trait]
impl Journal for WalJournal {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn place(&self) -> String {
        format!("embedded in {}", self.config.dir.display())
    }

    /// Does all its work before it returns, on the calling thread.
    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let ready = open::open(Arc::clone(&self.disk), &self.config, &claim)?;
        let core = ready.core;
        let no_thread = |error| OpenError::Unavailable(format!("no thread for the keeper: {error}"));
        let keeper = Keeper::start(Arc::clone(&core)).map_err(no_thread)?;
        let owner = Arc::new(Owner { keeper, _lock: ready.lock });
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&core);
        let head = core.state().head;
        Ok(Opened {
            cluster: head.cluster,
            epoch: head.epoch,
            tail: head.tail,
            durability: ready.durability,
            reader: Box::new(WalReader::live(Arc::clone(&core))),
            writer: Box::new(WalWriter::new(Arc::clone(&core), Arc::clone(&owner), ready.active, ready.last)),
            snapshots: Box::new(WalSnapshots::new(core, owner)),
            loss: ready.loss,
        })
    }

    /// Of the journal that is open here; otherwise of the directory, where another process may be writing.
    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        let reader = match self.live() {
            Some(core) => WalReader::live(core),
            None => WalReader::detached(Detached::open(Arc::clone(&self.disk))?),
        };
        Ok(Box::new(reader))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        import::import(Arc::clone(&self.disk), &self.config, from).await
    }
}
