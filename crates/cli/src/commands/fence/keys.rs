//! The keys of a fence that wants signed tokens.

use std::path::PathBuf;
use std::sync::Arc;

use leasehold_fence::signed::{Checker, Keyring};
use leasehold_types::{Generation, TenantName};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::ProxyArgs;
use crate::failure::Failure;
use crate::plan::usage;

/// A checker, and the file that its keys come from.
pub(super) struct Keys {
    pub(super) checker: Arc<Checker>,
    file: PathBuf,
}

impl Keys {
    /// Reads what was typed, and the file; `None` if plain numbers are wanted.
    ///
    /// # Errors
    /// [`Failure::Usage`] for what was typed, [`Failure::RefusedToStart`] for the file.
    pub(super) fn new(args: &ProxyArgs) -> Result<Option<Self>, Failure> {
        let Some(file) = args.keys.clone() else { return Ok(None) };
        let tenant = TenantName::new(&args.tenant).map_err(usage)?;
        let refused = |error| Failure::RefusedToStart(format!("--keys: {error}"));
        let ring = Keyring::from_file(&file).map_err(refused)?;
        let checker = Checker::new(ring, tenant, Generation(args.least_generation));
        let checker = if args.accept_plain { checker.letting_plain_pass() } else { checker };
        Ok(Some(Self { checker: Arc::new(checker), file }))
    }

    /// Listens for SIGHUP from now on; the future reads the file again at each, for ever.
    ///
    /// # Errors
    /// The signal cannot be listened for.
    pub(super) fn follow(self) -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
        let io = |error| Failure::Io { what: "cannot listen for signals".into(), error };
        let hang_up = signal(SignalKind::hangup()).map_err(io)?;
        Ok(self.keep(hang_up))
    }

    async fn keep(self, mut hang_up: Signal) {
        while hang_up.recv().await.is_some() {
            match Keyring::from_file(&self.file) {
                Ok(ring) => {
                    self.checker.replace(ring);
                    tracing::info!(event = "keys_reloaded", "tokens are checked with the keys of the file");
                }
                Err(why) => tracing::warn!(event = "keys_not_reloaded", %why, "the old keys stay in use"),
            }
        }
    }
}
