//! What the loop and its handles share: the queue's depth, the loop's progress, what a node says of itself.
//!
//! Atomics, nearly alone. The loop writes a few of them once a batch; handles read them without ever waiting for the loop, which
//! may be blocked inside an append.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use leasehold_core::{ClusterSecret, Counts, Credentials, Journaled};
use leasehold_types::{ClusterId, Durability, Epoch, Generation, LeaseId, Slot, TenantName};
use tokio::sync::mpsc;

use crate::cell::Asker;
use crate::config::STALL;
use crate::mailbox::{CallBatch, Mailbox};
use crate::ring::Ring;
use crate::{Active, Call, Clock, Observer, Role, Status, Trail};

/// What comes to the loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// A call, who asks, and where it is noted how it fares.
    Call(Call, Asker, Option<Arc<Trail>>),
    /// The calls that a lane sends at once.
    Batch(CallBatch),
    /// The caller of a waiting acquire is gone.
    Withdraw(TenantName, leasehold_core::Ticket),
    /// A lane gave up its waiting acquires: this one, or all of them.
    Forsake(Arc<Mailbox>, Option<u32>),
    /// A grant lay ready for somebody who is gone (A6).
    GiveBack(TenantName, LeaseId),
    /// Finish what was taken, resign, stop.
    Shutdown,
}

impl Message {
    /// Whose call it is, if it is one.
    pub(crate) fn tenant(&self) -> Option<&TenantName> {
        match self {
            Self::Call(call, ..) => Some(&call.tenant),
            Self::Batch(batch) => batch.tenant(),
            Self::Withdraw(..) | Self::Forsake(..) | Self::GiveBack(..) | Self::Shutdown => None,
        }
    }

    /// How many calls it brings.
    pub(crate) fn calls(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.len(),
            _ => 1,
        }
    }
}

/// What does not change during one life of a node.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) cluster: ClusterId,
    pub(crate) node: Arc<str>,
    pub(crate) journal: &'static str,
    pub(crate) durability: Durability,
    pub(crate) known_format: u8,
}

/// Whether calls are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    Serving,
    Closing,
    Stopped,
}

/// The bounds of the queue (N8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) queue: usize,
    pub(crate) reserve: usize,
    pub(crate) waiters: usize,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) identity: Identity,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) ring: Arc<Ring>,
    pub(crate) queue: mpsc::UnboundedSender<Message>,
    bounds: Bounds,
    /// Calls sent and not yet taken. Raised before sending and lowered after taking, so never too small.
    queued: AtomicUsize,
    /// When the work in flight began or last made progress, in milliseconds of the monotonic clock; 0 if there is none.
    busy_since_ms: AtomicU64,
    phase: AtomicU8,
    room: AtomicBool,
    /// Ours while active; the one that is followed while standing by.
    epoch: AtomicU64,
    tail: AtomicU64,
    /// The tail of the journal, as a standby sees it.
    head: AtomicU64,
    /// Why a standby cannot read the journal. Written a few times a second at most, by a loop that may wait.
    trouble: RwLock<Option<Arc<str>>>,
    /// The format of the journal.
    format: AtomicU8,
    /// What the nodes of the journal prove themselves with (N7).
    secret: RwLock<Option<ClusterSecret>>,
    /// Who the callers are. Written when that changes, which is rare; read with every request of a protected server.
    credentials: RwLock<Arc<Credentials>>,
    /// The tenant with the most in the queue. Read in overload alone.
    filled_by: RwLock<Option<TenantName>>,
    leases: AtomicUsize,
    sessions: AtomicUsize,
    waiters: AtomicUsize,
    last_token: AtomicU64,
    generation: AtomicU64,
    recovered_above: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        identity: Identity,
        epoch: Epoch,
        bounds: Bounds,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        ring: Arc<Ring>,
        queue: mpsc::UnboundedSender<Message>,
    ) -> Self {
        Self {
            identity,
            clock,
            observer,
            ring,
            queue,
            bounds,
            queued: AtomicUsize::new(0),
            busy_since_ms: AtomicU64::new(0),
            phase: AtomicU8::new(Phase::Serving as u8),
            room: AtomicBool::new(true),
            epoch: AtomicU64::new(epoch.0),
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            trouble: RwLock::new(None),
            format: AtomicU8::new(0),
            secret: RwLock::new(None),
            credentials: RwLock::default(),
            filled_by: RwLock::default(),
            leases: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            last_token: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            recovered_above: AtomicU64::new(0),
        }
    }

    /// Finds a place in the queue for a call, or does not (N8). [`Shared::taken`] gives places back.
    pub(crate) fn admit(&self, call: &Call) -> bool {
        let most =
            if call.has_reserve() { self.bounds.queue } else { self.bounds.queue - self.bounds.reserve };
        if call.wait_ms() > 0 && self.waiters.load(Relaxed) >= self.bounds.waiters {
            return false;
        }
        let queued = self.queued.fetch_add(1, Relaxed);
        // A quarter more for those who are not the ones that filled it.
        let admitted = queued < most || (queued < most + most / 4 && self.is_filled_by_another(&call.tenant));
        if !admitted {
            self.queued.fetch_sub(1, Relaxed);
        }
        admitted
    }

    fn is_filled_by_another(&self, tenant: &TenantName) -> bool {
        let filled_by = self.filled_by.read().unwrap_or_else(PoisonError::into_inner);
        filled_by.as_ref().is_some_and(|other| other != tenant)
    }

    /// Says which tenant has the most in the queue.
    pub(crate) fn set_filled_by(&self, tenant: Option<&TenantName>) {
        if self.filled_by.read().unwrap_or_else(PoisonError::into_inner).as_ref() != tenant {
            *self.filled_by.write().unwrap_or_else(PoisonError::into_inner) = tenant.cloned();
        }
    }

    /// Calls that wait to be taken.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Relaxed)
    }

    /// This many calls have left the queue.
    pub(crate) fn taken(&self, calls: usize) {
        self.queued.fetch_sub(calls, Relaxed);
    }

    /// The loop begins work, or made progress and begins more.
    pub(crate) fn busy(&self, now: Duration) {
        self.busy_since_ms.store(ms(now).max(1), Relaxed);
    }

    /// Nothing is in flight.
    pub(crate) fn idle(&self) {
        self.busy_since_ms.store(0, Relaxed);
    }

    /// Whether work has been in flight without progress for too long (N5).
    pub(crate) fn is_stalled(&self, now: Duration) -> bool {
        let since = self.busy_since_ms.load(Relaxed);
        since != 0 && ms(now).saturating_sub(since) >= ms(STALL)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Serving,
            1 => Phase::Closing,
            _ => Phase::Stopped,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Publishes what the table is like after a batch.
    pub(crate) fn publish(&self, tail: Slot, counts: &Counts, room: bool) {
        self.tail.store(tail.0, Relaxed);
        self.leases.store(counts.leases, Relaxed);
        self.sessions.store(counts.sessions, Relaxed);
        self.waiters.store(counts.waiters, Relaxed);
        self.last_token.store(counts.last_token, Relaxed);
        self.generation.store(counts.generation, Relaxed);
        self.recovered_above.store(counts.recovered_above, Relaxed);
        self.room.store(room, Relaxed);
    }

    /// Publishes how far a standby has followed the journal, which it could read just now.
    pub(crate) fn follow(&self, epoch: Epoch, head: Slot, tail: Slot, counts: &Counts) {
        self.epoch.store(epoch.0, Relaxed);
        self.head.store(head.0, Relaxed);
        self.publish(tail, counts, true);
        self.set_trouble(None);
    }

    /// Why the journal cannot be read, or `None` if it can.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        let mut known = self.trouble.write().unwrap_or_else(PoisonError::into_inner);
        *known = trouble.map(Arc::from);
    }

    /// See [`Shared::set_trouble`].
    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the format of the journal, and the secret of its nodes.
    pub(crate) fn set_format(&self, journaled: &Journaled) {
        self.format.store(journaled.format(), Relaxed);
        if self.secret().as_ref() != journaled.secret() {
            self.set_secret(journaled.secret());
        }
    }

    /// Publishes who the callers are, if that has changed. A revoked credential is refused before its revocation is
    /// answered, since the loop publishes before it answers.
    pub(crate) fn set_credentials(&self, credentials: &Credentials) {
        if self.credentials().changes() != credentials.changes() {
            self.replace_credentials(credentials);
        }
    }

    /// The same where the table itself may have been replaced, and so counts anew.
    pub(crate) fn follow_credentials(&self, credentials: &Credentials) {
        if *self.credentials() != *credentials {
            self.replace_credentials(credentials);
        }
    }

    fn replace_credentials(&self, credentials: &Credentials) {
        let credentials = Arc::new(credentials.clone());
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = credentials;
    }

    /// See [`Shared::set_credentials`].
    pub(crate) fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.credentials.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The format was raised, and with it there may be a secret.
    pub(crate) fn raise_format(&self, format: u8, secret: Option<&ClusterSecret>) {
        self.format.fetch_max(format, Relaxed);
        self.set_secret(secret);
    }

    fn set_secret(&self, secret: Option<&ClusterSecret>) {
        *self.secret.write().unwrap_or_else(PoisonError::into_inner) = secret.cloned();
    }

    /// See [`Shared::set_format`].
    pub(crate) fn secret(&self) -> Option<ClusterSecret> {
        self.secret.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The node as it is; who is active, its seat knows.
    pub(crate) fn status(&self, active: Option<Active>) -> Status {
        let generation = self.generation.load(Relaxed);
        let (tail, head) = (self.tail.load(Relaxed), self.head.load(Relaxed));
        let Identity { cluster, ref node, journal, durability, known_format } = self.identity;
        Status {
            cluster,
            generation: Generation(generation),
            node: Arc::clone(node),
            role: if self.phase() == Phase::Stopped { Role::Standby } else { Role::Active },
            epoch: Epoch(self.epoch.load(Relaxed)),
            journal,
            durability,
            tail: Slot(tail),
            lag: head.saturating_sub(tail),
            active,
            trouble: self.trouble(),
            format: self.format.load(Relaxed),
            known_format,
            counts: Counts {
                leases: self.leases.load(Relaxed),
                sessions: self.sessions.load(Relaxed),
                waiters: self.waiters.load(Relaxed),
                last_token: self.last_token.load(Relaxed),
                generation,
                recovered_above: self.recovered_above.load(Relaxed),
            },
            stalled: self.is_stalled(self.clock.monotonic()),
            room: self.room.load(Relaxed),
            queued: self.queued(),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("identity", &self.identity).finish_non_exhaustive()
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
