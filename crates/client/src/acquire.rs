//! Asking for a resource.

mod attempt;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use leasehold_trace::{Kind, OpenSpan, TraceContext};
use leasehold_types::{Class, Mode, ResourceName, limits};

use crate::client::Client;
use crate::clock;
use crate::error::AcquireError;
use crate::guard::LeaseGuard;
use crate::session::Session;
use attempt::Failed;

/// One request waits at most this long in the queue; a longer wait asks again in time, which keeps its place.
const ONE_WAIT: Duration = Duration::from_millis(limits::WAIT_MAX_MS);

/// How the span of an acquire is called.
const SPAN: &str = "leasehold acquire";

/// How long to wait for a resource that is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    For(Duration),
    Forever,
}

/// Where the lease lives.
#[derive(Clone, Debug)]
enum Home {
    Client(Client),
    Session(Session),
}

/// What to do when the service cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenUnavailable {
    /// Do not run: the default.
    #[default]
    Fail,
    /// Run without a lock. Only for the efficiency class, where two at once waste work and do no harm.
    RunAnyway,
}

/// Why work under a lock was not done, or not finished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was not begun.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// It was stopped, and may have been done in part.
    #[error(transparent)]
    Stopped(#[from] crate::Lost),
}

/// A request for a resource; await it, or [`Acquire::run`] work under it. Dropping it while it waits withdraws it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Acquire {
    home: Home,
    resource: String,
    ttl: Duration,
    wait: Wait,
    mode: Mode,
    limit: Option<u32>,
    class: Class,
    lock_delay: Duration,
    max_hold: Option<Duration>,
    labels: BTreeMap<String, String>,
    value: Option<String>,
    when_unavailable: WhenUnavailable,
    /// The trace that it is part of.
    trace: Option<TraceContext>,
}

impl Acquire {
    pub(crate) fn of_client(client: Client, resource: String) -> Self {
        Self::new(Home::Client(client), resource, Duration::from_millis(limits::TTL_DEFAULT_MS))
    }

    pub(crate) fn in_session(session: Session, resource: String) -> Self {
        let ttl = session.ttl();
        Self::new(Home::Session(session), resource, ttl)
    }

    fn new(home: Home, resource: String, ttl: Duration) -> Self {
        Self {
            home,
            resource,
            ttl,
            wait: Wait::Forever,
            mode: Mode::Exclusive,
            limit: None,
            class: Class::Correctness,
            lock_delay: Duration::ZERO,
            max_hold: None,
            labels: BTreeMap::new(),
            value: None,
            when_unavailable: WhenUnavailable::Fail,
            trace: None,
        }
    }

    /// How long the lease lives without renewal; 15 s by default. In a session of one's own its ttl stays.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        if matches!(self.home, Home::Client(_)) {
            self.ttl = ttl;
        }
        self
    }

    /// Waits at most this long; without it, until the resource is granted.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::For(wait);
        self
    }

    /// Does not wait.
    pub fn no_wait(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// With other shared holders, excluding exclusive ones.
    pub fn shared(mut self) -> Self {
        (self.mode, self.limit) = (Mode::Shared, None);
        self
    }

    /// With at most `limit` holders, each with a permit.
    pub fn semaphore(mut self, limit: u32) -> Self {
        (self.mode, self.limit) = (Mode::Semaphore, Some(limit));
        self
    }

    /// What the lock is for; correctness by default.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Keeps the resource closed for this long after an expiry, for resources that cannot fence.
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.lock_delay = delay;
        self
    }

    /// Ends the lease at this age however often it is renewed.
    pub fn max_hold(mut self, age: Duration) -> Self {
        self.max_hold = Some(age);
        self
    }

    /// A label, for people.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// What observers of an election learn of its leader, together with the grant.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// The trace that this acquire is part of, as the caller's own `traceparent` says. It is passed on to the server, which
    /// records what it does if that trace is recorded; see also [`crate::ClientBuilder::traces`].
    pub fn trace(mut self, parent: TraceContext) -> Self {
        self.trace = Some(parent);
        self
    }

    /// What [`Acquire::run`] does when the service cannot be reached.
    pub fn when_unavailable(mut self, policy: WhenUnavailable) -> Self {
        self.when_unavailable = policy;
        self
    }

    /// Runs `work` while holding the resource and releases it afterwards. The work is dropped unfinished when the lease
    /// is no longer sure. It is given no guard only when it runs without a lock ([`WhenUnavailable::RunAnyway`]).
    ///
    /// # Errors
    /// Not begun, or stopped; a release that fails afterwards is not an error, since the lease ends by itself.
    pub async fn run<T>(self, work: impl AsyncFnOnce(Option<&LeaseGuard>) -> T) -> Result<T, RunError> {
        let (policy, class) = (self.when_unavailable, self.class);
        if policy == WhenUnavailable::RunAnyway && class != Class::Efficiency {
            let only = "only a lock of the efficiency class may run without the service";
            return Err(AcquireError::Invalid(only.to_owned()).into());
        }
        let guard = match self.await {
            Ok(guard) => guard,
            Err(AcquireError::Unavailable(_)) if policy == WhenUnavailable::RunAnyway => {
                return Ok(work(None).await);
            }
            Err(error) => return Err(error.into()),
        };
        let done = guard.run(async |guard| work(Some(guard)).await).await?;
        if let Err(error) = guard.release().await {
            tracing::warn!(%error, "the work is done, its lease ends by itself");
        }
        Ok(done)
    }

    /// The span of this acquire in its trace, where the client makes any.
    fn span(&self) -> Option<OpenSpan> {
        let settings = match &self.home {
            Home::Client(client) => client.settings(),
            Home::Session(session) => session.shared().settings.as_ref(),
        };
        settings.tracer.as_ref()?.begin(SPAN, Kind::Client, self.trace)
    }

    /// Acquires, and says what came of it in the span.
    async fn traced(mut self, mut span: OpenSpan) -> Result<LeaseGuard, AcquireError> {
        self.trace = Some(span.context());
        span.set("leasehold.resource", self.resource.clone());
        let acquired = self.acquired().await;
        match acquired.as_ref().map(LeaseGuard::token) {
            Ok(Ok(token)) => span.set("leasehold.fencing_token", token.get()),
            Ok(Err(lost)) => span.fail(lost.to_string()),
            Err(error) => span.fail(error.to_string()),
        }
        acquired
    }

    async fn acquired(&self) -> Result<LeaseGuard, AcquireError> {
        let name = ResourceName::new(&self.resource);
        let name = name.map_err(|invalid| AcquireError::Invalid(invalid.to_string()))?;
        let begun = clock::now();
        let until = match self.wait {
            Wait::For(wait) => Some(begun.plus(wait)),
            Wait::Forever => None,
        };
        loop {
            let session = match &self.home {
                Home::Client(client) => client.shared_session(self.ttl),
                Home::Session(session) if session.shared().is_full() => {
                    return Err(AcquireError::Invalid("the session has as many leases as it can".to_owned()));
                }
                Home::Session(session) => session.clone(),
            };
            match self.acquired_in(&session, &name, begun, until).await {
                Err(Failed::SessionOver) if matches!(self.home, Home::Client(_)) => {}
                Err(Failed::SessionOver) => {
                    return Err(AcquireError::Unavailable(session.shared().why_over().to_string()));
                }
                Err(Failed::With(error)) => return Err(error),
                Ok(guard) => return Ok(guard),
            }
        }
    }
}

impl IntoFuture for Acquire {
    type Output = Result<LeaseGuard, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.span() {
                Some(span) => Box::pin(self.traced(span)).await,
                None => self.acquired().await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one for each acquire, and it is moved into a box.
    #[test]
    fn a_request_that_is_awaited_is_small() {
        let acquire = Client::new("http://127.0.0.1:1").unwrap().acquire("r");
        let size = size_of_val(&acquire.acquired());
        assert!(size <= 720, "{size}");
    }
}
