//! The tower layer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Method, Request, Response};
use tower::{Layer, Service};

use super::headers::{self, Asked, Presented};
use super::maximum::{Failure, Maximum};
use super::problem;
use crate::rollout::{Rollout, Timer};
use crate::signed::Checker;
use crate::{Fence, FenceError, Rejection};

/// Which fence a request is to, if any.
type Find = dyn Fn(&Parts) -> Option<Fence> + Send + Sync;

/// Checks the fencing token of requests. See the [module](super) for what it guarantees.
#[derive(Clone)]
pub struct FenceLayer {
    find: Arc<Find>,
    check: Option<Arc<Check>>,
    checker: Option<Arc<Checker>>,
}

struct Check {
    maximum: Box<dyn Maximum>,
    rollout: Arc<Rollout>,
}

impl fmt::Debug for FenceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer").field("checks", &self.check.is_some()).finish_non_exhaustive()
    }
}

impl FenceLayer {
    /// Reads what is asked and leaves the check to the handler, in its own transaction. `find` names the fence of a
    /// request from its path, headers or extensions; `None` lets it pass.
    pub fn extracting(find: impl Fn(&Parts) -> Option<Fence> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find), check: None, checker: None }
    }

    /// Checks against a stored maximum before the handler runs, as far as the roll-out goes.
    pub fn checking(
        find: impl Fn(&Parts) -> Option<Fence> + Send + Sync + 'static,
        maximum: impl Maximum + 'static,
        rollout: Arc<Rollout>,
    ) -> Self {
        let check = Check { maximum: Box::new(maximum), rollout };
        Self { find: Arc::new(find), check: Some(Arc::new(check)), checker: None }
    }

    /// Wants signed tokens, as far as the checker does. A token that does not count is refused with 403: at once by
    /// [`FenceLayer::extracting`], as far as the roll-out goes by [`FenceLayer::checking`].
    #[must_use]
    pub fn signed(mut self, checker: Arc<Checker>) -> Self {
        self.checker = Some(checker);
        self
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> FenceService<S> {
        FenceService { inner, layer: self.clone() }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Clone, Debug)]
pub struct FenceService<S> {
    inner: S,
    layer: FenceLayer,
}

impl<S, A, B> Service<Request<A>> for FenceService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    A: Send + 'static,
    B: From<String> + Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        // The one that said it was ready is the one to call; the clone stays for the next request.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match layer.admit(&mut parts).await {
                Ok(()) => inner.call(Request::from_parts(parts, body)).await,
                Err(refused) => Ok(refused),
            }
        })
    }
}

impl FenceLayer {
    async fn admit<B: From<String>>(&self, parts: &mut Parts) -> Result<(), Response<B>> {
        if reads(&parts.method) {
            return Ok(());
        }
        let Some(fence) = (self.find)(parts) else { return Ok(()) };
        let read = headers::read(&parts.headers, &fence, self.checker.as_deref());
        let presented = read.map_err(|error| problem::invalid(&error))?;
        let ask = match (&self.check, presented) {
            (Some(check), presented) => {
                check.run(&fence, &presented).await.map_err(|error| answer(&error))?;
                presented.ok().flatten()
            }
            (None, Ok(ask)) => ask,
            (None, Err(refusal)) => return Err(problem::refusal(&Rejection::Untrusted(refusal))),
        };
        parts.extensions.insert(Asked { fence, ask });
        Ok(())
    }
}

impl Check {
    async fn run(&self, fence: &Fence, presented: &Presented) -> Result<(), FenceError<Failure>> {
        let stage = self.rollout.stage(fence.guard());
        if stage.enforces(fence.guard()) && !self.maximum.is_durable() {
            return Err(FenceError::Store("a maximum in memory is for tests, not for this stage".into()));
        }
        let timer = Timer::start();
        let outcome = match presented {
            Ok(None) => Err(FenceError::Rejected(Rejection::MissingToken)),
            Ok(Some(_)) | Err(_) if !stage.checks() => Ok(()),
            Ok(Some(ask)) => self.maximum.advance(fence, ask.grant()).await,
            Err(refusal) => Err(FenceError::Rejected(Rejection::Untrusted(refusal.clone()))),
        };
        self.rollout.checked(fence.guard(), timer.elapsed());
        let ask = presented.as_ref().ok().and_then(Option::as_ref);
        self.rollout.settle(fence, ask, outcome)
    }
}

/// Whether a request of this kind only reads.
pub(crate) fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

fn answer<B: From<String>>(error: &FenceError<Failure>) -> Response<B> {
    match error {
        FenceError::Rejected(rejection) => problem::refusal(rejection),
        // The reason is for the observer's log, not for the caller.
        FenceError::Store(_) | FenceError::Corrupt(_) => {
            problem::unavailable("the state of the fence is out of reach")
        }
    }
}
