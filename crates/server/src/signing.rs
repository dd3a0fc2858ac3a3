//! Signed tokens (B12): what a grant is, under a MAC that a fence checks without asking anybody.
//!
//! The keys are a file that service and fences share. It is read at the start and on SIGHUP; a file that cannot be used
//! leaves the keys as they are. Nothing of it is journaled: a token can be signed anew at any time.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use leasehold_fence::signed::{KeyFileError, Keyring, Signed};
use leasehold_fence::{Grant, Kind};
use leasehold_types::{FencingToken, Generation, Mode, Permit, ResourceName, TenantName};
use tracing::{info, warn};

use crate::config::ConfigError;

/// What signs.
#[derive(Debug)]
pub(crate) struct Signer {
    file: PathBuf,
    ring: RwLock<Keyring>,
}

impl Signer {
    /// Reads the keys.
    ///
    /// # Errors
    /// The file cannot be read, or is no file of keys.
    pub(crate) fn load(file: PathBuf) -> Result<Self, ConfigError> {
        let unusable = |error: KeyFileError| ConfigError::new("signing_keys", error.to_string());
        let ring = RwLock::new(Keyring::from_file(&file).map_err(unusable)?);
        Ok(Self { file, ring })
    }

    /// Reads the keys again, and says in the log what came of it.
    pub(crate) fn reload(&self) {
        match Keyring::from_file(&self.file) {
            Ok(ring) => {
                *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
                info!(event = "signing_keys_reloaded", "tokens are signed with the first key of the file");
            }
            Err(why) => warn!(event = "signing_keys_not_reloaded", %why, "the old keys stay in use"),
        }
    }

    /// Signs what was granted.
    pub(crate) fn sign(&self, tenant: &TenantName, generation: Generation, lease: &Provable<'_>) -> String {
        let grant = Grant::new(lease.resource.clone(), lease.token, lease.kind());
        let signed = Signed { tenant: tenant.clone(), generation, grant };
        self.ring.read().unwrap_or_else(PoisonError::into_inner).sign(&signed)
    }
}

/// What of a lease is signed.
pub(crate) struct Provable<'a> {
    pub(crate) resource: &'a ResourceName,
    pub(crate) token: FencingToken,
    pub(crate) mode: Mode,
    pub(crate) permit: Option<Permit>,
}

impl Provable<'_> {
    fn kind(&self) -> Kind {
        match (self.mode, self.permit) {
            (Mode::Shared, _) => Kind::Shared,
            (Mode::Semaphore, Some(permit)) => Kind::Permit(permit),
            (Mode::Exclusive | Mode::Semaphore, _) => Kind::Exclusive,
        }
    }
}

impl<'a> From<&'a leasehold_core::Grant> for Provable<'a> {
    fn from(grant: &'a leasehold_core::Grant) -> Self {
        Self { resource: &grant.resource, token: grant.token, mode: grant.mode, permit: grant.permit }
    }
}

impl<'a> From<&'a leasehold_core::LeaseView> for Provable<'a> {
    fn from(view: &'a leasehold_core::LeaseView) -> Self {
        Self { resource: &view.resource, token: view.token, mode: view.mode, permit: view.permit }
    }
}

impl<'a> From<&'a leasehold_core::RenewedLock> for Provable<'a> {
    fn from(lock: &'a leasehold_core::RenewedLock) -> Self {
        Self { resource: &lock.resource, token: lock.token, mode: lock.mode, permit: lock.permit }
    }
}
