//! Why a token does not count as the service's own.

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
