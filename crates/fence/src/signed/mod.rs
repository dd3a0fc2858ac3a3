//! Signed tokens: a fence that is told everything by the caller can still know that the service said it.
//!
//! A plain token is a number, and whoever can count can make one up. A signed token carries tenant, resource, kind of
//! grant, generation and number under a MAC, so that a forged, a foreign or a pre-restore token is refused offline,
//! before the fence is asked. It proves what was granted, not that the grant still stands: that is for the fence.
//!
//! The form is `lh1.<key id>.<payload>.<mac>`, payload and MAC in URL-safe base64 without padding. The MAC is BLAKE3 in
//! its keyed mode over everything before it. [`Keyring`] makes and checks them; keys rotate by their ids.

mod keyring;
mod payload;

pub use keyring::{InvalidKeyId, Key, KeyId, Keyring};
pub use payload::Signed;

use leasehold_types::{Generation, TenantName};

/// Why a signed token is refused. Nobody is told more than this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// It has not the form of one.
    #[error("not a signed token")]
    Malformed,
    /// No key with this id is known, or no longer.
    #[error("signed with an unknown key")]
    UnknownKey,
    /// The MAC is not that of the payload.
    #[error("forged")]
    Forged,
    /// It was granted to another tenant.
    #[error("granted to tenant {0}")]
    Foreign(TenantName),
    /// It is of a time before the last recovery: what it was granted on may be lost.
    #[error("of generation {} before {}", presented.0, least.0)]
    OldGeneration {
        /// The token's generation.
        presented: Generation,
        /// The least that is accepted.
        least: Generation,
    },
}
