//! What may be asked of the lock table. Everything in a command was parsed and bounded at the edge.

use leasehold_types::{
    Class, CredentialId, FencingToken, Labels, LeaseId, Mode, OwnerId, Permit, RequestKey, ResourceName,
    SessionId, TenantName, Ttl,
};

use crate::secret::ClusterSecret;

/// The node's name for one command; the reply comes back under it. Unique within one life of a node, and growing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// A command with who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Where the reply goes.
    pub ticket: Ticket,
    /// Whose names are meant; from the caller's identity, never from the body.
    pub tenant: TenantName,
    /// The authenticated caller, for the audit log; `None` on an open server. Leases and sessions are bound to it: those
    /// of another principal are as good as unknown. A question without it may be about everything of the tenant.
    pub identity: Option<Box<str>>,
    /// Makes a retry the same command.
    pub key: Option<RequestKey>,
    /// What is asked.
    pub command: Command,
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Take a resource, or wait for it.
    Acquire(Acquire),
    /// Move a lease's deadline, or its session's.
    Renew(Renew),
    /// Give a lease back.
    Release {
        /// Which.
        lease_id: LeaseId,
    },
    /// Give leadership back, perhaps to a candidate of one's choice.
    Resign {
        /// Which.
        lease_id: LeaseId,
        /// The first waiter of this owner goes before all others; without such a waiter nothing happens.
        to: Option<OwnerId>,
    },
    /// Replace the value that a lease carries for observers.
    Proclaim {
        /// Whose.
        lease_id: LeaseId,
        /// The new value.
        value: Box<str>,
    },
    /// Leave the queue: the caller of that ticket is gone or has changed its mind. Has no reply.
    Withdraw {
        /// The waiting acquire.
        waiter: Ticket,
    },
    /// Begin a session.
    OpenSession(OpenSession),
    /// Keep a session alive.
    RenewSession(RenewSession),
    /// End a session and every lease in it.
    CloseSession {
        /// Which.
        session_id: SessionId,
        /// Set when an operator ends somebody else's session: audited.
        by_operator: Option<Operator>,
    },
    /// Take a resource away from its holders.
    ForceRelease(ForceRelease),
    /// Raise generation and token floor after a loss (`recover`, `restore`).
    Recover(Recover),
    /// Let facts of a newer format into the journal (`upgrade finish`).
    RaiseFormat(RaiseFormat),
    /// Say who a caller is and what it may do.
    AddCredential(AddCredential),
    /// Take that back.
    RevokeCredential(RevokeCredential),
    /// Note that a backup is about to be made.
    NoteBackup(Operator),
    /// Serve with these quotas from now on, and note them and the policies, if they changed. The node's own: nobody asks it
    /// from outside.
    NoteSettings {
        /// Whose settings, and what they are: spelled out in the reason.
        operator: Operator,
        /// Nothing is declared, which is not worth noting unless something was.
        is_default: bool,
        /// How much each tenant may have.
        quotas: crate::Quotas,
    },
    /// Ask without changing anything.
    Query(Query),
}

/// Take a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acquire {
    /// What.
    pub resource: ResourceName,
    /// Who, for people. Absent only with a session, whose owner it then is.
    pub owner: Option<OwnerId>,
    /// How long without renewal. Absent only with a session, whose ttl it then is.
    pub ttl: Option<Ttl>,
    /// How long to wait in the queue; 0: answer at once.
    pub wait_ms: u64,
    /// Alone or with others.
    pub sharing: Sharing,
    /// What the lock is for.
    pub class: Class,
    /// The session that it lives and ends with.
    pub session: Option<SessionId>,
    /// Renew the session, too, if the resource is free. Whoever has to wait renews it when the wait is over.
    pub renews_session: bool,
    /// The id of the lease to be: the caller's, or drawn for it by the server.
    pub lease_id: LeaseId,
    /// Whether the caller chose the id, and so can ask again under it.
    pub lease_id_chosen: bool,
    /// Quiet time after an expiry.
    pub lock_delay_ms: u64,
    /// Longest age of the lease however often it is renewed.
    pub max_hold_ms: Option<u64>,
    /// Free-form.
    pub labels: Labels,
    /// What observers of an election learn of its leader.
    pub value: Option<Box<str>>,
}

impl Acquire {
    /// The plainest one, for struct update: alone, for correctness, without waiting, under an id that the caller chose. Owner
    /// and ttl, or a session, are still to be said.
    pub fn plain(resource: ResourceName, lease_id: LeaseId) -> Self {
        Self {
            resource,
            owner: None,
            ttl: None,
            wait_ms: 0,
            sharing: Sharing::Exclusive,
            class: Class::Correctness,
            session: None,
            renews_session: false,
            lease_id,
            lease_id_chosen: true,
            lock_delay_ms: 0,
            max_hold_ms: None,
            labels: Labels::default(),
            value: None,
        }
    }
}

/// Alone or with others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sharing {
    /// One holder.
    Exclusive,
    /// With other shared holders.
    Shared,
    /// With at most `limit` semaphore holders, itself included. From 1 to [`leasehold_types::limits::SEMAPHORE_LIMIT`].
    Semaphore {
        /// The most holders this caller accepts.
        limit: u32,
    },
}

impl Sharing {
    /// The word for it.
    pub const fn mode(self) -> Mode {
        match self {
            Self::Exclusive => Mode::Exclusive,
            Self::Shared => Mode::Shared,
            Self::Semaphore { .. } => Mode::Semaphore,
        }
    }
}

/// Renew a lease; one in a session renews its session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renew {
    /// Which.
    pub lease_id: LeaseId,
    /// Another ttl from now on: journaled.
    pub ttl: Option<Ttl>,
    /// What the client saw since its last success.
    pub report: RenewalReport,
    /// Whether the answer lists what was renewed: with a lease of a session that is everything in it.
    pub lists_locks: bool,
}

/// What a client tells about its renewals: for operators (E3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RenewalReport {
    /// Renewals that failed since the last success.
    pub missed: u32,
    /// Why the last one failed.
    pub last_error: Option<Box<str>>,
    /// Longest time between two successes.
    pub max_gap_ms: u64,
}

/// Begin a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenSession {
    /// Drawn by the server.
    pub session_id: SessionId,
    /// Who, for people.
    pub owner: OwnerId,
    /// How long without renewal.
    pub ttl: Ttl,
    /// Free-form.
    pub labels: Labels,
}

/// Keep a session alive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenewSession {
    /// Which.
    pub session_id: SessionId,
    /// Another ttl from now on: journaled.
    pub ttl: Option<Ttl>,
    /// Endings that the client has taken note of.
    pub seen_ended: Vec<LeaseId>,
    /// What the client saw since its last success.
    pub report: RenewalReport,
}

/// An operator's name and reason, kept in the audit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    /// Who says so.
    pub actor: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Take a resource away from its holders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForceRelease {
    /// What.
    pub resource: ResourceName,
    /// Which holders.
    pub target: ForceTarget,
    /// Do not keep the resource closed for its lock delay.
    pub skip_lock_delay: bool,
    /// Who and why.
    pub operator: Operator,
}

/// Which holders are forced out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForceTarget {
    /// The holder of this token, and nobody else: what the operator looked at is what ends.
    Token(FencingToken),
    /// Every holder.
    All,
}

/// Raise generation and token floor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recover {
    /// Every later token is above this.
    pub token_floor: u64,
    /// Who and why.
    pub operator: Operator,
}

/// Let facts of a newer format into the journal. Whoever asks has made sure that no older node is alive (N10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RaiseFormat {
    /// The format that is wanted; one that the journal has already is no change.
    pub format: u8,
    /// What becomes the secret of the nodes if they have none yet.
    pub secret: ClusterSecret,
    /// Who and why.
    pub operator: Operator,
}

/// Say who a caller is and what it may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddCredential {
    /// The credential; when it was created is decided with it.
    pub credential: Box<crate::Credential>,
    /// Who and why.
    pub operator: Operator,
}

/// Do not accept a credential any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevokeCredential {
    /// Which.
    pub id: CredentialId,
    /// Who and why.
    pub operator: Operator,
}

/// Ask without changing anything. Answers are linearizable: the node confirms its epoch first (R1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// One lease with everything known of it.
    Lease(LeaseId),
    /// Live leases in resource order.
    Locks(LockFilter),
    /// Everything about one resource.
    Explain(ResourceName),
    /// Whether this token is a current one: advice for people, no fence.
    Validate {
        /// Of which resource.
        resource: ResourceName,
        /// The token.
        token: FencingToken,
        /// Of which permit, for semaphores.
        permit: Option<Permit>,
    },
    /// One session.
    Session(SessionId),
    /// Live sessions in id order.
    Sessions {
        /// After this one.
        after: Option<SessionId>,
        /// At most so many.
        page_size: usize,
    },
    /// Audit entries in order.
    Audit {
        /// Of this resource alone.
        resource: Option<ResourceName>,
        /// With a larger number than this.
        after: u64,
        /// At most so many.
        page_size: usize,
    },
    /// Audit entries of every tenant in order: the whole chain.
    WholeAudit {
        /// With a larger number than this.
        after: u64,
        /// At most so many.
        page_size: usize,
    },
    /// Who has the resource of a lease that has ended.
    Successor(LeaseId),
    /// What the tenant has.
    Usage,
    /// Recompute the audit chain.
    AuditVerify,
    /// Credentials of every tenant in id order.
    Credentials {
        /// After this one.
        after: Option<CredentialId>,
        /// At most so many.
        page_size: usize,
    },
}

/// Which leases to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockFilter {
    /// Resource names that begin with this.
    pub prefix: Option<Box<str>>,
    /// Of this owner.
    pub owner: Option<OwnerId>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Held at least this long.
    pub held_longer_than_ms: Option<u64>,
    /// Whose client reported at least so many missed renewals.
    pub missed_at_least: Option<u32>,
    /// After this place.
    pub cursor: Option<LockCursor>,
    /// At most so many.
    pub page_size: usize,
}

/// A place in a listing: after this token of this resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockCursor {
    /// The resource.
    pub resource: ResourceName,
    /// The token; 0 is before all.
    pub token: u64,
}
