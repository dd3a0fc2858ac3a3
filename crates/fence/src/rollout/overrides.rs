//! The emergency exit.

use leasehold_types::{WallTime, limits};

/// Lets rejected writes through for a while: by whom, why, until when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    actor: String,
    reason: String,
    ends_at: WallTime,
}

/// Why an override is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an override needs an actor and a reason, each of 1 to {} bytes", limits::REASON_BYTES)]
pub struct InvalidOverride;

impl Override {
    /// An override that ends by itself.
    ///
    /// # Errors
    /// Actor or reason empty or too long.
    pub fn new(actor: &str, reason: &str, ends_at: WallTime) -> Result<Self, InvalidOverride> {
        let valid = |text: &str| !text.trim().is_empty() && text.len() <= limits::REASON_BYTES;
        if !valid(actor) || !valid(reason) {
            return Err(InvalidOverride);
        }
        Ok(Self { actor: actor.to_owned(), reason: reason.to_owned(), ends_at })
    }

    /// Who made it.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// When it ends.
    pub fn ends_at(&self) -> WallTime {
        self.ends_at
    }
}
