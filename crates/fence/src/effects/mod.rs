//! Side effects that cannot compare tokens: calls of other services, messages, mail.
//!
//! **Best effort.** Nothing here makes such an effect happen exactly once by itself. What it gives:
//! - `idempotency_key`: the same key for the same operation *across grants*, so that a service which remembers keys
//!   does the thing once even if a second holder asks again. (A key with the token in it would be another one for the
//!   successor, and the thing be done twice.) Feature `effects`.
//! - The ledger (`ledger` in each SQL module): tells a successor what an older token began, and whether it ended.
//! - [`Envelope`]: a message with resource, token and operation, for a check in the consumer's own transaction. With a
//!   ledger in that transaction, the *consumer's database* changes once for each operation.

mod envelope;
#[cfg(feature = "effects")]
mod key;

pub use envelope::{Envelope, InvalidEnvelope};
#[cfg(feature = "effects")]
pub use key::idempotency_key;
use leasehold_types::FencingToken;

/// What the ledger knows of an operation when someone begins it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Began {
    /// Nobody has begun it: do it, then end it.
    Fresh,
    /// This very grant has begun it before: a retry. Whether the effect has happened is unknown.
    Again,
    /// An older grant has begun it and not ended it. Whether the effect has happened is unknown: ask the other side by
    /// its idempotency key, or do it again with the same key.
    Unfinished {
        /// The grant that began it.
        token: FencingToken,
    },
    /// It has ended: do not do it again.
    Done {
        /// The grant that ended it.
        token: FencingToken,
        /// What was noted at its end.
        outcome: String,
    },
}

/// One row of a ledger, as numbers and text.
#[cfg(feature = "_sql")]
pub(crate) struct Kept {
    pub token: i64,
    pub outcome: Option<String>,
}

#[cfg(feature = "_sql")]
impl Kept {
    /// What the row means to the grant that begins now.
    pub(crate) fn began<E>(self, now: FencingToken) -> Result<Began, crate::FenceError<E>> {
        let token = u64::try_from(self.token).ok().and_then(|number| FencingToken::new(number).ok());
        let impossible = || crate::FenceError::Corrupt(format!("token {} in the ledger", self.token));
        let token = token.ok_or_else(impossible)?;
        Ok(match self.outcome {
            Some(outcome) => Began::Done { token, outcome },
            None if token == now => Began::Again,
            None => Began::Unfinished { token },
        })
    }
}
