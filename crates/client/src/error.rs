//! What can go wrong, as narrow as each operation allows. Every error answers two questions: may the same be tried
//! again, and has surely nothing happened?

use std::fmt;
use std::time::Duration;

use leasehold_api::ErrorCode;
use leasehold_proto::v1 as pb;
use leasehold_types::{EndReason, FencingToken};

/// Why an acquire gave no lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Others hold the resource, and the wait is over.
    #[error(transparent)]
    NotAcquired(#[from] NotAcquired),
    /// The service could not be reached, or did not answer in time. What may have been granted is given back as soon as
    /// it can be reached, or ends with its ttl.
    #[error("the lock service is not available: {0}")]
    Unavailable(String),
    /// The service refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It was granted, and gone before it could be confirmed.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// What was asked cannot be asked.
    #[error("{0}")]
    Invalid(String),
}

impl AcquireError {
    /// Whether the same acquire may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotAcquired(_) | Self::Unavailable(_) | Self::Lost(_) => true,
            Self::Refused(refused) => refused.is_retryable(),
            Self::Invalid(_) => false,
        }
    }

    /// Whether surely nothing was granted.
    pub fn has_no_side_effects(&self) -> bool {
        match self {
            Self::NotAcquired(_) | Self::Invalid(_) => true,
            Self::Refused(refused) => refused.has_no_side_effects(),
            Self::Unavailable(_) | Self::Lost(_) => false,
        }
    }
}

/// Others hold the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAcquired {
    /// The resource.
    pub resource: String,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// How many wait.
    pub waiters: u64,
}

impl fmt::Display for NotAcquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is held", self.resource)?;
        match self.holders.first() {
            Some(holder) => write!(f, " by {} with token {}", holder.owner, holder.token),
            None => f.write_str(" or kept closed for a moment"),
        }
    }
}

impl std::error::Error for NotAcquired {}

/// Somebody who holds a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its label.
    pub owner: String,
    /// Its fencing token.
    pub token: u64,
}

/// The service refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Refused {
    /// From the closed list of error codes.
    pub code: ErrorCode,
    /// For people.
    pub detail: String,
    /// Why the lease ended, where that is the refusal.
    pub reason: Option<EndReason>,
}

impl Refused {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.code.is_retryable()
    }

    /// Whether surely nothing has happened.
    pub fn has_no_side_effects(&self) -> bool {
        self.code.has_no_side_effects()
    }

    pub(crate) fn from_wire(problem: &pb::Problem) -> Self {
        // A code that is newer than this client is told by its retryability.
        let newer = if problem.retryable { ErrorCode::OutcomeUnknown } else { ErrorCode::BadRequest };
        Self {
            code: ErrorCode::parse(&problem.code).unwrap_or(newer),
            detail: problem.detail.clone(),
            reason: problem.reason.and_then(|reason| pb::EndReason::try_from(reason).ok()).map(end_reason),
        }
    }
}

/// The reason on the wire in the words of the client.
pub(crate) fn end_reason(reason: pb::EndReason) -> EndReason {
    match reason {
        pb::EndReason::Unknown => EndReason::Unknown,
        pb::EndReason::Released => EndReason::Released,
        pb::EndReason::Expired => EndReason::Expired,
        pb::EndReason::Forced => EndReason::Forced,
        pb::EndReason::SessionEnded => EndReason::SessionEnded,
    }
}

/// Why a release is not known to have happened. The lease ends with its ttl at the latest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// It had ended otherwise before.
    #[error("the lease had ended before it was released: {0}")]
    NotHeld(EndReason),
    /// The service could not be reached in time; the release is sent as soon as it can.
    #[error("the lock service is not available: {0}")]
    Unavailable(String),
    /// The service refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl ReleaseError {
    /// Whether the same release may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotHeld(_) => false,
            Self::Unavailable(_) => true,
            Self::Refused(refused) => refused.is_retryable(),
        }
    }

    /// Whether surely nothing has happened.
    pub fn has_no_side_effects(&self) -> bool {
        match self {
            Self::NotHeld(_) => true,
            Self::Unavailable(_) => false,
            Self::Refused(refused) => refused.has_no_side_effects(),
        }
    }
}

/// Why a checkpoint did not let its side effect pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Less time is left than the step needs with its margin. It may pass after the next renewal.
    #[error("{left:?} are left of the lease and {needed:?} are needed")]
    TooLittleLeft {
        /// How long the lease is surely still held.
        left: Duration,
        /// Cost and margin.
        needed: Duration,
    },
    /// The lease is lost.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// The holder can no longer prove that it holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The resource.
    pub resource: String,
    /// The token that is not good any more.
    pub token: FencingToken,
    /// Why.
    pub reason: LostReason,
    /// How long ago the last confirmed renewal was sent.
    pub last_renewal_ago: Duration,
    /// Renewals missed since then.
    pub missed: u32,
    /// How long ago the time ended for which it was surely held; nothing when it was lost before.
    pub expired_ago: Duration,
    /// Who holds the resource now. Looked up after the loss, which does not wait for it: a later look at the guard may
    /// know more.
    pub holder: Option<Holder>,
}

/// Why a lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// No renewal was confirmed before the deadline: a pause of this process, a cut network, a stopped service.
    NotRenewed,
    /// The service says that its time ended.
    Expired,
    /// An operator took it away.
    Forced,
    /// Its session was closed.
    SessionEnded,
    /// Somebody who has the lease id gave it back elsewhere.
    Released,
    /// The service does not know it.
    Unknown,
}

impl LostReason {
    pub(crate) fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::Expired => Self::Expired,
            EndReason::Forced => Self::Forced,
            EndReason::SessionEnded => Self::SessionEnded,
            EndReason::Released => Self::Released,
            EndReason::Unknown => Self::Unknown,
        }
    }

    /// A few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotRenewed => "no renewal was confirmed in time",
            Self::Expired => "it expired",
            Self::Forced => "an operator took it away",
            Self::SessionEnded => "its session has ended",
            Self::Released => "it was given back elsewhere",
            Self::Unknown => "the service does not know it",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, token, reason, last_renewal_ago, missed, holder, .. } = self;
        write!(f, "the lease on {resource} with token {token} is lost: {}", reason.as_str())?;
        write!(f, "; last renewal {last_renewal_ago:.1?} ago, {missed} missed")?;
        match holder {
            Some(holder) => write!(f, "; now held by {} with token {}", holder.owner, holder.token),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Lost {}
