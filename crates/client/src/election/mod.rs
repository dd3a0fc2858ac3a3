//! Leader election: leadership is a lease on `election/{name}`, candidates are its waiters, the fencing token is the term.

mod leadership;
mod observer;

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use leasehold_api::ELECTION_PREFIX;
use leasehold_proto::v1 as pb;
use leasehold_types::FencingToken;

use crate::acquire::Acquire;
use crate::calls::CallError;
use crate::client::Client;
use crate::connections::Locks;
use crate::error::{AcquireError, Refused};

pub use leadership::{HandOverError, Leadership};
pub use observer::{LeaderChange, Observer};

/// An election by its name. Cheap to clone; nothing is sent before something is asked.
///
/// ```no_run
/// # async fn example(client: leasehold::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let election = client.election("scheduler");
/// let leadership = election.campaign().value("10.0.0.7:9000").await?;
/// let shutdown = std::future::pending(); // in a service: completes when it is told to end
/// leadership
///     .lead(shutdown, async |leadership| {
///         let draining = leadership.draining();
///         while !draining.is_cancelled() {
///             let Ok(term) = leadership.term() else { return };
///             // … one step of the leader's work, with the term on everything it sends …
///             # let _ = term;
///         }
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    client: Client,
    name: String,
}

/// Who leads, as everybody may see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    /// Its label.
    pub owner: String,
    /// Its fencing token: larger than that of every leader before it. Whoever receives something from a leader refuses
    /// what carries a smaller one than it has seen.
    pub term: FencingToken,
    /// What it proclaims, such as its address.
    pub value: Option<String>,
    /// By the server's wall clock: for people.
    pub elected_at: SystemTime,
}

/// Who leads, and who would.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Nobody, for a moment or for lack of candidates.
    pub leader: Option<Leader>,
    /// Labels of those who wait, in order.
    pub candidates: Vec<String>,
}

/// Why a question about an election, or a proclamation, has no good answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The service could not be reached, or did not answer in time.
    #[error("the lock service is not available: {0}")]
    Unavailable(String),
    /// The service refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Leadership is lost.
    #[error(transparent)]
    Lost(#[from] crate::Lost),
}

impl ElectionError {
    /// Whether the same may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Refused(refused) => refused.is_retryable(),
            Self::Lost(_) => false,
        }
    }

    /// Whether surely nothing has happened.
    pub fn has_no_side_effects(&self) -> bool {
        match self {
            Self::Unavailable(_) => false,
            Self::Refused(refused) => refused.has_no_side_effects(),
            Self::Lost(_) => true,
        }
    }
}

impl From<CallError> for ElectionError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refused) => Self::Refused(refused),
            CallError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl Election {
    pub(crate) fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Stands as a candidate. Nothing is sent before the returned campaign is awaited.
    pub fn campaign(&self) -> Campaign {
        let resource = format!("{ELECTION_PREFIX}{}", self.name);
        Campaign { acquire: self.client.acquire(resource) }
    }

    /// Who leads right now, and who stands.
    ///
    /// # Errors
    /// The service does not answer, or refuses.
    pub async fn standing(&self) -> Result<Standing, ElectionError> {
        let show = |mut locks: Locks| {
            let question = pb::GetElectionRequest { name: self.name.clone() };
            async move { locks.get_election(question).await }
        };
        let shown = self.client.settings().call_patiently(show).await?;
        Ok(Standing { leader: shown.leader.and_then(Leader::from_wire), candidates: shown.candidates })
    }

    /// Follows who leads, beginning with now.
    pub fn observe(&self) -> Observer {
        Observer::new(self.client.clone(), self.name.clone())
    }
}

impl Leader {
    fn from_wire(leader: pb::Leader) -> Option<Self> {
        Some(Self {
            owner: leader.owner_id,
            term: FencingToken::new(leader.fencing_token).ok()?,
            value: leader.value,
            elected_at: SystemTime::UNIX_EPOCH + Duration::from_millis(leader.elected_at_ms),
        })
    }
}

/// A candidacy; await it to lead. Dropping it while it waits withdraws it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Campaign {
    acquire: Acquire,
}

impl Campaign {
    /// How long leadership lives without renewal; 15 s by default. A leader that is killed is replaced after this.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.acquire = self.acquire.ttl(ttl);
        self
    }

    /// Stands at most this long; without it, until elected.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.acquire = self.acquire.wait(wait);
        self
    }

    /// Leads at once or not at all.
    pub fn no_wait(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// What everybody may learn of the leader, such as its address; told together with its election.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.acquire = self.acquire.value(value);
        self
    }
}

impl IntoFuture for Campaign {
    type Output = Result<Leadership, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(Leadership::new(self.acquire.await?)) })
    }
}
