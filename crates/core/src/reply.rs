//! What may be answered. A reply is true of the table right after its command; it may be told only once everything it
//! saw is durable, which is the node's affair.

use leasehold_types::{
    Class, EndReason, FencingToken, Generation, Guarantee, Labels, LeaseId, Mode, OwnerId, Permit,
    ResourceKey, ResourceName, SessionId, WallTime,
};

use crate::audit::AuditEntry;
use crate::secret::ClusterSecret;

/// What came of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The lease is given, or was given to an earlier attempt and lives.
    Granted(Box<Grant>),
    /// Others hold it, or wait before us, or a lock delay is open; and the wait, if any, is over.
    NotGranted(Box<NotGranted>),
    /// The deadline was moved.
    Renewed(Box<Renewed>),
    /// The lease is given back (now, or by an earlier attempt).
    Released {
        /// What is free. Its key, which is there already: most who give a lock back do not ask what it was.
        resource: ResourceKey,
        /// Whose token it was.
        token: FencingToken,
        /// The session it lived with; of a retry, only where that is still known.
        session: Option<SessionId>,
    },
    /// The lease carries this value now.
    Proclaimed {
        /// Of what.
        resource: ResourceName,
        /// Its token.
        token: FencingToken,
    },
    /// A session began, or began with an earlier attempt and lives.
    SessionOpened(SessionOpened),
    /// The session's deadline was moved.
    SessionRenewed(SessionRenewed),
    /// The session is over (now, or by an earlier attempt).
    SessionClosed {
        /// Which.
        session_id: SessionId,
        /// How many leases ended with it.
        released: u64,
    },
    /// Holders were forced out, perhaps none.
    ForceReleased {
        /// Who was forced out.
        released: Vec<Holder>,
        /// The audit entry that says so.
        audit_seq: u64,
    },
    /// Generation and token floor were raised.
    Recovered {
        /// The new generation.
        generation: Generation,
        /// Every later token is above this.
        token_floor: u64,
    },
    /// The journal has this format now.
    FormatRaised(FormatRaised),
    /// A credential is accepted.
    CredentialAdded {
        /// The audit entry that says so.
        audit_seq: u64,
    },
    /// A credential is not accepted any more.
    CredentialRevoked {
        /// Which.
        credential: Box<crate::Credential>,
        /// The audit entry that says so.
        audit_seq: u64,
    },
    /// A backup is noted.
    BackupNoted {
        /// The audit entry that says so.
        audit_seq: u64,
    },
    /// The settings are noted, or were.
    SettingsNoted {
        /// The audit entry that says so, where there is a new one.
        audit_seq: Option<u64>,
    },
    /// Answer to [`crate::Query::Usage`].
    Usage {
        /// What is live of the tenant.
        usage: crate::Usage,
        /// How many of it wait.
        waiters: usize,
    },
    /// Answer to [`crate::Query::Credentials`].
    Credentials {
        /// By id.
        credentials: Vec<crate::Credential>,
        /// Ask after this one for more.
        next: Option<leasehold_types::CredentialId>,
    },
    /// Answer to [`crate::Query::Lease`].
    Lease(Box<LeaseView>),
    /// Answer to [`crate::Query::Locks`].
    Locks(LocksPage),
    /// Answer to [`crate::Query::Explain`].
    Explained(Box<Explained>),
    /// Answer to [`crate::Query::Validate`].
    Validated {
        /// Whether the token is held right now.
        current: bool,
        /// The largest token given for this resource that is still known.
        last_token: Option<FencingToken>,
    },
    /// Answer to [`crate::Query::Successor`]; `None` while nobody is in the way of the one whose lease ended.
    Successor(Option<Box<Successor>>),
    /// Answer to [`crate::Query::Session`].
    Session(Box<SessionView>),
    /// Answer to [`crate::Query::Sessions`].
    Sessions {
        /// In id order.
        sessions: Vec<SessionView>,
        /// Ask after this one for more.
        next: Option<SessionId>,
    },
    /// Answer to [`crate::Query::Audit`].
    Audit {
        /// In order.
        entries: Vec<AuditEntry>,
        /// Whether there may be more.
        more: bool,
    },
    /// Answer to [`crate::Query::AuditVerify`].
    AuditVerified(AuditVerified),
    /// A lawful no.
    Refused(Refusal),
}

/// A resource that was granted anew, to the exclusion of whoever had it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Successor {
    /// Which.
    pub resource: ResourceName,
    /// The token of the lease that has ended.
    pub ended: FencingToken,
    /// The newest that is held now.
    pub token: FencingToken,
}

/// A grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Of what.
    pub resource: ResourceName,
    /// To whom.
    pub owner: OwnerId,
    /// The capability to renew and release.
    pub lease_id: LeaseId,
    /// Larger than every earlier one.
    pub token: FencingToken,
    /// Which place of a semaphore.
    pub permit: Option<Permit>,
    /// What was really given: shorter than asked where max hold cuts it.
    pub ttl_ms: u64,
    /// For people.
    pub created_at: WallTime,
    /// For people.
    pub expires_at: WallTime,
    /// How it is shared.
    pub mode: Mode,
    /// What for.
    pub class: Class,
    /// What it is worth.
    pub guarantee: Guarantee,
    /// The session it lives with.
    pub session: Option<SessionId>,
    /// The session was renewed with it, as was asked: `ttl_ms` is what that gave.
    pub session_renewed: bool,
    /// Advice, such as a ttl outside the sensible range.
    pub warning: Option<&'static str>,
}

/// Why there is no grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotGranted {
    /// Of what.
    pub resource: ResourceName,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// How many wait.
    pub waiters: usize,
    /// When the lock delay ends.
    pub earliest_regrant_at: Option<WallTime>,
}

/// Somebody who holds a resource, as others may see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// Label.
    pub owner: OwnerId,
    /// Token.
    pub token: FencingToken,
    /// Permit of a semaphore.
    pub permit: Option<Permit>,
    /// For people.
    pub expires_at: WallTime,
    /// How it is shared.
    pub mode: Mode,
}

/// A renewal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renewed {
    /// Which.
    pub lease_id: LeaseId,
    /// What was really given: clients count from this.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: WallTime,
    /// What was renewed: the lease, or every lease of its session up to a page.
    pub locks: Vec<RenewedLock>,
}

/// One lease that was renewed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenewedLock {
    /// Of what.
    pub resource: ResourceName,
    /// Its token.
    pub token: FencingToken,
    /// How it is shared.
    pub mode: Mode,
    /// Permit of a semaphore.
    pub permit: Option<Permit>,
}

/// A session that began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionOpened {
    /// Which.
    pub session_id: SessionId,
    /// Its ttl.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: WallTime,
}

/// A session that lives on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRenewed {
    /// Which.
    pub session_id: SessionId,
    /// Its ttl.
    pub ttl_ms: u64,
    /// For people.
    pub expires_at: WallTime,
    /// Live leases in it.
    pub lock_count: usize,
    /// Leases of it that ended otherwise than by release, until the client has said that it saw them.
    pub ended: Vec<EndedInSession>,
}

/// A lease of a live session that ended without its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedInSession {
    /// Which.
    pub lease_id: LeaseId,
    /// Of what.
    pub resource: ResourceName,
    /// Its token.
    pub token: FencingToken,
    /// Why.
    pub reason: EndReason,
}

/// The ownership record (A7) with what is known of its renewals (E3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseView {
    /// Of what.
    pub resource: ResourceName,
    /// By whom.
    pub owner: OwnerId,
    /// The capability; listings leave it out.
    pub lease_id: LeaseId,
    /// Token.
    pub token: FencingToken,
    /// Permit of a semaphore.
    pub permit: Option<Permit>,
    /// How it is shared.
    pub mode: Mode,
    /// The most holders that the semaphore's holder accepts.
    pub limit: Option<u32>,
    /// What for.
    pub class: Class,
    /// What it is worth.
    pub guarantee: Guarantee,
    /// Session it lives with.
    pub session: Option<SessionId>,
    /// For people.
    pub created_at: WallTime,
    /// For people.
    pub expires_at: WallTime,
    /// Ttl.
    pub ttl_ms: u64,
    /// Until the client's own count ends.
    pub remaining_ms: u64,
    /// Since the grant, or since the node took over.
    pub held_ms: u64,
    /// Longest age.
    pub max_hold_ms: Option<u64>,
    /// Quiet time after an expiry.
    pub lock_delay_ms: u64,
    /// Free-form.
    pub labels: Labels,
    /// What observers of an election learn of its leader.
    pub value: Option<Box<str>>,
    /// Renewals of the lease, or of its session.
    pub renewals: u32,
    /// Renewals that failed, as the client reports.
    pub missed: u32,
    /// Why the last one failed, as the client reports.
    pub last_error: Option<Box<str>>,
    /// Longest gap between two successes, as the client reports.
    pub max_gap_ms: u64,
    /// How many wait for the resource.
    pub waiters: usize,
}

/// One page of leases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocksPage {
    /// In resource order, then by token.
    pub locks: Vec<LeaseView>,
    /// Ask from here for more.
    pub next: Option<crate::LockCursor>,
    /// When it was true.
    pub as_of: WallTime,
}

/// Everything about one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explained {
    /// Which.
    pub resource: ResourceName,
    /// Who holds it, by token.
    pub holders: Vec<LeaseView>,
    /// Who waits, in order.
    pub waiters: Vec<WaiterView>,
    /// The largest token still known.
    pub last_token: Option<FencingToken>,
    /// The last endings, newest first.
    pub endings: Vec<Ending>,
    /// Acquires that met a holder or a waiter since this node took over, while the resource stayed in use.
    pub contended: u64,
    /// When the lock delay ends.
    pub earliest_regrant_at: Option<WallTime>,
    /// When it was true.
    pub as_of: WallTime,
}

/// Somebody in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaiterView {
    /// Label.
    pub owner: OwnerId,
    /// How it wants to share.
    pub mode: Mode,
    /// How long it has waited.
    pub waiting_ms: u64,
}

/// How a lease of a resource ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Whose.
    pub owner: OwnerId,
    /// Its token.
    pub token: FencingToken,
    /// Why.
    pub reason: EndReason,
    /// Whether max hold ended it.
    pub max_hold: bool,
    /// For people.
    pub at: WallTime,
}

/// A session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// Which.
    pub session_id: SessionId,
    /// Whose.
    pub owner: OwnerId,
    /// Ttl.
    pub ttl_ms: u64,
    /// For people.
    pub created_at: WallTime,
    /// For people.
    pub expires_at: WallTime,
    /// Until the client's own count ends.
    pub remaining_ms: u64,
    /// Live leases in it.
    pub lock_count: usize,
    /// Free-form.
    pub labels: Labels,
    /// Renewals since this node took over.
    pub renewals: u32,
    /// Renewals that failed, as the client reports.
    pub missed: u32,
    /// Why the last one failed, as the client reports.
    pub last_error: Option<Box<str>>,
    /// Longest gap between two successes, as the client reports.
    pub max_gap_ms: u64,
}

/// What recomputing the audit chain found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditVerified {
    /// Whether every hash is right.
    pub intact: bool,
    /// Entries looked at.
    pub entries: u64,
    /// The first entry whose hash or place is wrong.
    pub first_bad: Option<u64>,
    /// The chain's end.
    pub head: [u8; 32],
}

/// A lawful no. The same input gives the same refusal; nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The lease has ended, or nobody knows it.
    LeaseNotHeld {
        /// Why.
        reason: EndReason,
        /// Whether max hold ended it.
        max_hold: bool,
        /// Its token, where remembered.
        token: Option<FencingToken>,
    },
    /// The session has ended, or nobody knows it.
    SessionEnded,
    /// No such lease or session for this caller.
    NotFound,
    /// The same id or key with another command.
    IdempotencyMismatch,
    /// A correctness lock on a journal that can lose tokens.
    ClassNotSupported,
    /// Not the token of a present holder.
    StaleToken {
        /// Tokens of present holders.
        current: Vec<FencingToken>,
    },
    /// Nobody of that name is waiting; the lease is still held.
    NoSuchWaiter,
    /// Ttl or owner differ from the session's.
    NotAsSession {
        /// Which field.
        field: &'static str,
    },
    /// The journal has room for endings only.
    NoRoom,
    /// All 2^53 tokens are used up.
    TokensUsedUp,
    /// A later attempt under the same lease id took this one's place in the queue.
    Superseded,
    /// The tenant has as much of something as it may have.
    QuotaExceeded {
        /// Of what.
        what: &'static str,
        /// How much it may have.
        limit: u64,
    },
    /// A certificate's name stands for one credential.
    CredentialTaken,
    /// The journal is still of a format that cannot hold this (N10).
    FormatTooOld,
}

/// The format of the journal after it was asked to be raised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatRaised {
    /// The format.
    pub format: u8,
    /// The one before; the same if there was nothing to raise.
    pub before: u8,
    /// The secret of the journal's nodes, which came with it.
    pub secret: Option<ClusterSecret>,
}
