//! What is recorded. Facts are journaled, commands are not: replay never runs a decision again, so decision logic may
//! change without breaking old journals.

use leasehold_types::{
    Class, CredentialId, Epoch, FencingToken, Generation, Labels, LeaseId, OwnerId, Permit, RequestKey,
    ResourceKey, SessionId, TenantName, Ttl, WallTime,
};

use crate::command::{ForceTarget, Operator, Sharing};
use crate::credential::Credential;
use crate::secret::ClusterSecret;

/// One thing that happened. Every prefix of a journal's facts is a lawful state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fact {
    /// A lease was given.
    Granted(Box<Granted>),
    /// A holder gave its lease back.
    Released {
        /// Which.
        lease_id: LeaseId,
        /// For people.
        at: WallTime,
        /// Under this key.
        key: Option<RequestKey>,
    },
    /// A lease's time ended.
    Expired {
        /// Which.
        lease_id: LeaseId,
        /// Whether it had reached its longest age.
        max_hold: bool,
        /// For people.
        at: WallTime,
    },
    /// A session began.
    SessionOpened(Box<SessionBegan>),
    /// A session ended, and with it every lease in it.
    SessionEnded {
        /// Which.
        session_id: SessionId,
        /// How.
        cause: SessionEnd,
        /// For people.
        at: WallTime,
        /// Under this key.
        key: Option<RequestKey>,
    },
    /// An operator took a resource away from holders, perhaps none. Is its own audit entry, so that the two cannot part.
    ForceReleased(Box<Forced>),
    /// A renewal came with another ttl (R5).
    TtlChanged {
        /// Whose.
        of: LifeId,
        /// From now on.
        ttl: Ttl,
        /// What earlier answers may still count on, where that is more than the new ttl gives; else 0. A shorter ttl
        /// never takes back what was promised.
        floor_ms: u64,
    },
    /// The remaining time of a long lease (R6) and the age of one with a max hold.
    Noted {
        /// Whose.
        of: LifeId,
        /// What was left of the armed ttl.
        remaining_ms: u64,
        /// How old it was.
        age_ms: u64,
    },
    /// The first renewal after a note: the full ttl counts again (R6).
    NoteCleared {
        /// Whose.
        of: LifeId,
    },
    /// A lock delay is over.
    DelayEnded {
        /// Where.
        resource: ResourceKey,
        /// The token whose ending opened it.
        token: FencingToken,
    },
    /// An id that nobody knew was released; it cannot be granted while this is remembered.
    IdClosed {
        /// By whom.
        tenant: TenantName,
        /// Which.
        lease_id: LeaseId,
        /// Under this key.
        key: Option<RequestKey>,
    },
    /// Remembered outcomes up to this number are forgotten.
    Forgotten {
        /// Up to and with this.
        through: u64,
    },
    /// A client has taken note of endings in its session.
    EndingsSeen {
        /// Whose.
        session_id: SessionId,
        /// Which.
        lease_ids: Vec<LeaseId>,
    },
    /// Generation and token floor were raised. Is its own audit entry.
    Recovered {
        /// The new generation.
        generation: Generation,
        /// Every later token is above this.
        token_floor: u64,
        /// Who and why.
        operator: Operator,
        /// The authenticated caller.
        identity: Option<Box<str>>,
        /// For people.
        at: WallTime,
    },
    /// A lease carries another value for observers.
    Proclaimed {
        /// Whose.
        lease_id: LeaseId,
        /// The new value.
        value: Box<str>,
    },
    /// The active node shut down in order (J16).
    Resigned,
    /// A node took the journal over: the first fact of its epoch, where several nodes share a journal.
    TookOver(Box<TookOver>),
    /// A credential is accepted from now on. Is its own audit entry. Since format 2.
    CredentialAdded {
        /// Which; without its secret.
        credential: Box<Credential>,
        /// Who and why.
        change: CredentialChange,
    },
    /// A credential is not accepted any more. Is its own audit entry. Since format 2.
    CredentialRevoked {
        /// Which.
        id: CredentialId,
        /// Who and why.
        change: CredentialChange,
    },
    /// The active node serves with other policies and quotas than the one before. Is its own audit entry. Since format 2.
    SettingsChanged {
        /// Whose settings, and what they are.
        operator: Operator,
        /// For people.
        at: WallTime,
    },
    /// An operator was about to make a backup. Is its own audit entry. Since format 3.
    BackedUp {
        /// Who and why.
        operator: Operator,
        /// The authenticated caller.
        identity: Option<Box<str>>,
        /// For people.
        at: WallTime,
    },
    /// The nodes of this journal share a secret from now on (N7). Since format 2.
    SecretMade(ClusterSecret),
    /// Facts of this format may follow (N10). Since format 2.
    FormatRaised {
        /// The format, of this fact already.
        format: u8,
        /// Who asked for it; is then its own audit entry. Nobody where a new journal begins with it.
        by: Option<Box<RaisedBy>>,
        /// For people.
        at: WallTime,
    },
}

impl Fact {
    /// The oldest format that has this kind of fact. A kind keeps its bytes for ever: a fact with more to say is another
    /// kind, of a newer format.
    pub const fn format(&self) -> u8 {
        match self {
            Self::Granted(granted) if granted.principal.is_some() => 2,
            Self::SessionOpened(began) if began.principal.is_some() => 2,
            Self::Granted(_)
            | Self::Released { .. }
            | Self::Expired { .. }
            | Self::SessionOpened(_)
            | Self::SessionEnded { .. }
            | Self::ForceReleased(_)
            | Self::TtlChanged { .. }
            | Self::Noted { .. }
            | Self::NoteCleared { .. }
            | Self::DelayEnded { .. }
            | Self::IdClosed { .. }
            | Self::Forgotten { .. }
            | Self::EndingsSeen { .. }
            | Self::Recovered { .. }
            | Self::Proclaimed { .. }
            | Self::Resigned
            | Self::TookOver(_) => 1,
            Self::SecretMade(_)
            | Self::CredentialAdded { .. }
            | Self::CredentialRevoked { .. }
            | Self::SettingsChanged { .. } => 2,
            Self::BackedUp { .. } => 3,
            Self::FormatRaised { format, .. } => *format,
        }
    }
}

/// Who raised the format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RaisedBy {
    /// Who and why.
    pub operator: Operator,
    /// The authenticated caller.
    pub identity: Option<Box<str>>,
}

/// Who changed a credential, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CredentialChange {
    /// Who and why.
    pub operator: Operator,
    /// The authenticated caller.
    pub identity: Option<Box<str>>,
    /// For people.
    pub at: WallTime,
}

/// A node took the journal over. Standbys learn from it where the active node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TookOver {
    /// The epoch it claimed: an address counts only as long as this epoch is the current one.
    pub epoch: Epoch,
    /// Its name, for people.
    pub node: Box<str>,
    /// Where others reach it.
    pub url: Box<str>,
}

/// A lease was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The lease.
    pub lease_id: LeaseId,
    /// Of what.
    pub resource: ResourceKey,
    /// To whom.
    pub owner: OwnerId,
    /// In which session.
    pub session: Option<SessionId>,
    /// How it is shared.
    pub sharing: Sharing,
    /// Which place of a semaphore.
    pub permit: Option<Permit>,
    /// What for.
    pub class: Class,
    /// How long without renewal.
    pub ttl: Ttl,
    /// Longest age.
    pub max_hold_ms: Option<u64>,
    /// Quiet time after an expiry.
    pub lock_delay_ms: u64,
    /// Free-form.
    pub labels: Labels,
    /// What observers of an election learn of its leader.
    pub value: Option<Box<str>>,
    /// Larger than every earlier one.
    pub token: FencingToken,
    /// For people.
    pub at: WallTime,
    /// Under this key.
    pub key: Option<RequestKey>,
    /// To which principal, who alone may use it; `None` on an open server, and in a session, which has its own. Since
    /// format 2.
    pub principal: Option<Box<str>>,
}

/// A session began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionBegan {
    /// Which.
    pub session_id: SessionId,
    /// Of which tenant.
    pub tenant: TenantName,
    /// Whose.
    pub owner: OwnerId,
    /// How long without renewal.
    pub ttl: Ttl,
    /// Free-form.
    pub labels: Labels,
    /// For people.
    pub at: WallTime,
    /// Under this key.
    pub key: Option<RequestKey>,
    /// Of which principal, who alone may use it; `None` on an open server. Since format 2.
    pub principal: Option<Box<str>>,
}

/// How a session ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    /// Its client closed it.
    Closed,
    /// Its time ended.
    Expired,
    /// An operator ended it. Is its own audit entry.
    ByOperator {
        /// Who and why.
        operator: Operator,
        /// The authenticated caller.
        identity: Option<Box<str>>,
    },
}

/// An operator took a resource away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forced {
    /// What.
    pub resource: ResourceKey,
    /// Which leases ended.
    pub lease_ids: Vec<LeaseId>,
    /// What was asked for.
    pub target: ForceTarget,
    /// Whether lock delays were skipped.
    pub skip_lock_delay: bool,
    /// Who and why.
    pub operator: Operator,
    /// The authenticated caller.
    pub identity: Option<Box<str>>,
    /// For people.
    pub at: WallTime,
    /// Under this key.
    pub key: Option<RequestKey>,
}

/// A lease without a session, or a session: whatever has a deadline of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LifeId {
    /// A lease.
    Lease(LeaseId),
    /// A session.
    Session(SessionId),
}
