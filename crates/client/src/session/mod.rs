//! A session: one liveness scope with one ttl, kept alive by one stream, for any number of leases.

mod asking;
mod awake;
mod leases;
mod link;
mod outbound;
mod places;
mod shared;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;
use leasehold_types::LeaseId;
use tokio::sync::oneshot;

use crate::acquire::Acquire;
use crate::client::Settings;
use crate::clock;
use crate::deadline::{Phase, Stamp};
use crate::error::Refused;

pub(crate) use asking::Asking;
pub(crate) use places::{Answered, Told};
pub(crate) use shared::{Shared, lease_bytes};

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SessionEnd {
    /// It was closed here.
    #[error("the session was closed")]
    Closed,
    /// The service says that it has ended: its time was over, or somebody closed it.
    #[error("the session has ended")]
    Ended,
    /// The service will not have it.
    #[error(transparent)]
    Refused(Refused),
    /// Another cluster answers under this address.
    #[error("cluster {found} answers instead of {expected}")]
    OtherCluster {
        /// Where the session began.
        expected: String,
        /// Who answers now.
        found: String,
    },
}

/// Why a request has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskError {
    /// The session is over.
    #[error(transparent)]
    Ended(SessionEnd),
    /// Not answered in time; the text says what is known.
    #[error("{0}")]
    Unavailable(String),
}

/// A session with the service: its leases live as long as it is kept alive, and all end with it.
///
/// Cheap to clone. When the last clone and the last guard of it are dropped it is closed, best effort: not immediately
/// and not for certain. Await [`Session::close`] when it matters.
#[derive(Clone, Debug)]
pub struct Session {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.begin_close();
    }
}

impl Session {
    /// Begins a session; it connects in the background.
    pub(crate) fn open(settings: Arc<Settings>, ttl: Duration) -> Self {
        let shared = Arc::new(Shared::new(settings, ttl));
        tokio::spawn(link::supervise(Arc::clone(&shared)));
        Self { handle: Arc::new(Handle { shared }) }
    }

    /// Asks for a resource. Nothing is sent before the returned request is awaited.
    pub fn acquire(&self, resource: impl Into<String>) -> Acquire {
        Acquire::in_session(self.clone(), resource.into())
    }

    /// The ttl of this session and of every lease in it.
    pub fn ttl(&self) -> Duration {
        self.shared().ttl
    }

    /// How long the session is surely still alive.
    pub fn remaining(&self) -> Duration {
        self.shared().life().remaining(clock::now())
    }

    /// Whether it is over, and a new one is needed.
    pub(crate) fn is_over(&self) -> bool {
        self.shared().is_over()
    }

    /// How sure the holder of its leases may be.
    pub(crate) fn phase(&self, now: Stamp) -> Phase {
        self.shared().life().phase(now)
    }

    /// Ends the session and every lease in it. Waits for the confirmation at most a few seconds; without it the
    /// session ends with its ttl.
    pub async fn close(self) {
        self.shared().begin_close();
        self.shared().until_over().await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Asks, and waits for the answer at most until `deadline`. Cancel-safe in that nothing is withdrawn: the request may
    /// still be carried out.
    pub(crate) async fn ask(&self, ask: Ask, deadline: Stamp) -> Result<Outcome, AskError> {
        let told = self.asking(ask, None, || deadline).await;
        self.heard(told).map(|answered| answered.outcome)
    }

    /// The same for one that may wait in a queue until `wait_until`, whose deadline is asked for again whenever it has passed.
    /// What it gives is for [`Session::heard`].
    ///
    /// These are two functions, and neither is async, because a future that is awaited in another is copied into it: requests
    /// are large, and there is one for each acquire.
    pub(crate) fn asking<D>(&self, ask: Ask, wait_until: Option<Stamp>, deadline: D) -> Asking<'_, D>
    where
        D: Fn() -> Stamp + Unpin,
    {
        self.shared().wire.asking(ask, wait_until, deadline)
    }

    /// What came of asking.
    pub(crate) fn heard(&self, told: Option<Told>) -> Result<Answered, AskError> {
        match told {
            Some(Ok(answered)) => Ok(answered),
            Some(Err(end)) => Err(AskError::Ended(end)),
            None => Err(AskError::Unavailable(self.shared().trouble())),
        }
    }

    /// Gives a lease back without waiting: now, or when the service can be reached again. Also withdraws an acquire
    /// that waits under this id, and makes sure that one still under way is never granted.
    pub(crate) fn release_in_background(&self, lease_id: LeaseId) {
        self.shared().wire.ask_unheard(release(lease_id));
    }

    /// Waits for a keep-alive that was decided after everything that was heard until now (R7).
    pub(crate) async fn confirm(&self, deadline: Stamp) -> Result<(), AskError> {
        let shared = self.shared();
        let (waiter, confirmed) = oneshot::channel();
        shared.wire.confirm(waiter);
        tokio::select! {
            confirmed = confirmed => confirmed.map_err(|_| AskError::Ended(shared.why_over())),
            () = Box::pin(clock::sleep_until(deadline)) => Err(AskError::Unavailable(shared.trouble())),
        }
    }
}

/// The request that gives a lease back.
pub(crate) fn release(lease_id: LeaseId) -> Ask {
    Ask::Release(pb::StreamRelease { lease_id: lease_bytes(&lease_id) })
}
