//! What a fence answers.

use std::num::NonZeroU64;

use leasehold_types::{FencingToken, ResourceName};

use super::refusal::Refusal;
use super::row::Row;

/// The answer of a fence to one ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Write, and keep the new row in the same atomic step. No row: nothing to keep.
    Admitted(Option<Row>),
    /// Do not write.
    Rejected(Rejection),
}

/// Why a write is not admitted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejection {
    /// A newer grant has been here. The presenter lost its lease, whatever it believes: stop the work.
    ///
    /// With the strict policy also the second write of one grant; then both tokens are the same.
    #[error("stale token {presented}: the highest seen is {highest}")]
    Stale {
        /// The token presented.
        presented: FencingToken,
        /// The highest token that the fence has seen.
        highest: FencingToken,
    },
    /// No token came with the write.
    #[error("missing token: this write needs the fencing token of its grant")]
    MissingToken,
    /// The token is of another lock than the one that guards this fence, or of another kind of grant.
    #[error("wrong scope: a token of {presented} does not count here, {guard} guards this fence")]
    WrongScope {
        /// The lock whose token was presented.
        presented: ResourceName,
        /// The lock that guards the fence.
        guard: ResourceName,
    },
    /// This very step has been applied: a retry can be answered as done.
    #[error("step {step} of token {token} is already applied")]
    AlreadyApplied {
        /// The token.
        token: FencingToken,
        /// The step.
        step: NonZeroU64,
    },
    /// An earlier step of the same grant has not arrived yet.
    #[error("step {step} of token {token} came before step {expected}")]
    OutOfOrder {
        /// The token.
        token: FencingToken,
        /// The step presented.
        step: NonZeroU64,
        /// The step whose turn it is.
        expected: NonZeroU64,
    },
    /// The protected row, which the statement names, does not exist: nothing was written, and no token is at fault.
    #[error("the row to write does not exist")]
    MissingRow,
    /// The fence wants signed tokens, and this is none that counts here.
    #[error("untrusted token: {0}")]
    Untrusted(Refusal),
}

impl Rejection {
    /// The word for it in metrics, log lines and wire formats.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Stale { .. } => "stale",
            Self::MissingToken => "missing_token",
            Self::WrongScope { .. } => "wrong_scope",
            Self::AlreadyApplied { .. } => "already_applied",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::MissingRow => "missing_row",
            Self::Untrusted(_) => "untrusted",
        }
    }
}

/// Why there is no [`Admitted`](super::Admitted).
#[derive(Debug, thiserror::Error)]
pub enum FenceError<E> {
    /// The fence answered: no. Nothing was written.
    #[error("rejected: {0}")]
    Rejected(Rejection),
    /// The store did not answer as it should. Nothing may be written; whether the maximum has moved is unknown, and
    /// does no harm.
    #[error("the fence's store failed: {0}")]
    Store(#[from] E),
    /// What the store keeps for this fence can be no row of a fence. An operator has to look; nothing is admitted.
    #[error("the fence keeps an impossible row: {0}")]
    Corrupt(String),
}

impl<E> FenceError<E> {
    /// The same, with the store's error in a box: for callers that know several stores.
    pub fn boxed(self) -> FenceError<Box<dyn std::error::Error + Send + Sync>>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self {
            Self::Rejected(rejection) => FenceError::Rejected(rejection),
            Self::Store(error) => FenceError::Store(error.into()),
            Self::Corrupt(why) => FenceError::Corrupt(why),
        }
    }

    /// The rejection, if it is one.
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Store(_) | Self::Corrupt(_) => None,
        }
    }
}
