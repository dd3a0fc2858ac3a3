//! What happened, for watchers, logs and metrics. Events of facts are made while facts are applied, so replay makes
//! the same ones as the live table did.

use leasehold_types::{EndReason, FencingToken, LeaseId, Mode, OwnerId, Permit, ResourceKey, SessionId};

/// One happening at a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Where.
    pub resource: ResourceKey,
    /// Whose.
    pub owner: OwnerId,
    /// Which lease.
    pub lease_id: LeaseId,
    /// Its token; `None` for [`EventKind::Queued`].
    pub token: Option<FencingToken>,
    /// How it is shared.
    pub mode: Mode,
    /// Permit of a semaphore.
    pub permit: Option<Permit>,
    /// Its ttl.
    pub ttl_ms: u64,
    /// The session it lives with.
    pub session: Option<SessionId>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A lease was given; journaled.
    Granted {
        /// How long the caller waited in the queue; 0 on replay.
        waited_ms: u64,
    },
    /// A lease ended; journaled.
    Ended {
        /// Why.
        reason: EndReason,
        /// Whether max hold ended it.
        max_hold: bool,
        /// How long it was held, as far as this node knows; 0 on replay.
        held_ms: u64,
    },
    /// A lease carries another value for observers; journaled.
    Proclaimed,
    /// Somebody began to wait; not journaled.
    Queued,
    /// A lease or its session was renewed; not journaled.
    Renewed {
        /// Renewals that the client missed since its last success.
        missed: u32,
    },
}

impl EventKind {
    /// Whether it stands in the journal, and so has an id and is never missed.
    pub const fn is_journaled(self) -> bool {
        matches!(self, Self::Granted { .. } | Self::Ended { .. } | Self::Proclaimed)
    }
}
