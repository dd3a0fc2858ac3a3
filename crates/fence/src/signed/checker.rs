//! What a fence accepts.

use std::sync::{PoisonError, RwLock};

use leasehold_types::{Generation, TenantName};

use super::{Keyring, Refusal};
use crate::Grant;

/// The keys of a fence, and whose tokens count there. Keys can be replaced while it is in use.
#[derive(Debug)]
pub struct Checker {
    ring: RwLock<Keyring>,
    tenant: TenantName,
    least: Generation,
    lets_plain_pass: bool,
}

impl Checker {
    /// Accepts tokens of this tenant, signed with a key of the ring, of this generation or a later one; no plain numbers.
    pub fn new(ring: Keyring, tenant: TenantName, least: Generation) -> Self {
        Self { ring: RwLock::new(ring), tenant, least, lets_plain_pass: false }
    }

    /// Takes plain numbers as well, on the caller's word: for the time in which callers are moved to signed tokens.
    #[must_use]
    pub fn letting_plain_pass(mut self) -> Self {
        self.lets_plain_pass = true;
        self
    }

    /// Checks with these keys from now on.
    pub fn replace(&self, ring: Keyring) {
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
    }

    /// The grant that was signed.
    ///
    /// # Errors
    /// Says why the token does not count.
    pub fn check(&self, text: &str) -> Result<Grant, Refusal> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        Ok(ring.check(text, &self.tenant, self.least)?.grant)
    }

    /// Whether this text must prove itself.
    #[cfg(feature = "http")]
    pub(crate) fn concerns(&self, text: &str) -> bool {
        !self.lets_plain_pass || !text.bytes().all(|byte| byte.is_ascii_digit())
    }
}
