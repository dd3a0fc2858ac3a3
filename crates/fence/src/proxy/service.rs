//! One request: admitted, sent, answered.

use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::flights::Flight;
use super::forward::{Forwarder, Piece, Piped, Unanswered};
use super::gate::{Closed, Gate};
use super::{Config, Unmatched};
use crate::http::layer::reads;
use crate::http::{Failure, headers, problem};
use crate::rollout::Rollout;
use crate::serve::{Body, text};
use crate::{Fence, FenceError, Grant, Rejection};

/// Frames of an answer that may wait for the caller.
const PIPED: usize = 16;

pub(super) struct Service {
    pub(super) config: Config,
    pub(super) forwarder: Forwarder,
    pub(super) gate: Gate,
    pub(super) rollout: Arc<Rollout>,
}

/// Where the head of the answer goes. It is closed when the caller has gone.
type Caller = oneshot::Sender<Response<Body>>;

/// A request that was let through.
enum Pass {
    /// Nothing is promised about it.
    Unordered,
    /// It is noted.
    Noted(Fence, Grant, Flight),
}

impl Service {
    /// The answer to one request. The work is done by a task of its own: a caller that leaves does not cancel what the
    /// service has begun, nor the proxy's waiting for its end.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
        alive: mpsc::Sender<()>,
    ) -> Response<Body> {
        let (caller, head) = oneshot::channel();
        tokio::spawn(async move {
            self.run(request, peer, caller).await;
            drop(alive);
        });
        let lost = || problem::unknown(StatusCode::BAD_GATEWAY, "the proxy could not finish the request");
        head.await.unwrap_or_else(|_| text(lost()))
    }

    async fn run(&self, request: Request<Incoming>, peer: SocketAddr, caller: Caller) {
        let (parts, body) = request.into_parts();
        let pass = match self.admit(&parts, &caller).await {
            Ok(pass) => pass,
            Err(refused) => return drop(caller.send(text(refused))),
        };
        let limit = usize::try_from(self.config.limits.body_bytes).unwrap_or(usize::MAX);
        let request = Request::from_parts(parts, Limited::new(body, limit).boxed_unsync());
        let Some(request) = self.forwarder.prepare(request, peer) else {
            self.end(&pass).await;
            let why =
                problem::problem(StatusCode::BAD_REQUEST, "bad_request", "no such path can be asked", "");
            return drop(caller.send(text(why)));
        };
        self.gate.tally.in_flight.add(1);
        let answered = self.exchange(request, caller).await;
        self.gate.tally.in_flight.sub(1);
        match (answered, pass) {
            (false, Pass::Noted(fence, grant, flight)) => self.gate.doubt(&fence, &grant, &flight).await,
            (_, pass) => self.end(&pass).await,
        }
    }

    /// Sends the request and passes the answer on. Whether the service is known to have finished with it.
    async fn exchange(&self, request: Request<Body>, caller: Caller) -> bool {
        let until = Instant::now() + self.config.answer_within;
        let response = match timeout_at(until, self.forwarder.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(Unanswered::NotSent(why))) => {
                tracing::warn!(why, "the service cannot be reached");
                let code = "upstream_unavailable";
                let refused =
                    problem::problem(StatusCode::BAD_GATEWAY, code, "the service cannot be reached", "");
                drop(caller.send(text(refused)));
                return true;
            }
            Ok(Err(Unanswered::Unknown(why))) => {
                return self.unanswered(StatusCode::BAD_GATEWAY, &why, Some(caller));
            }
            Err(_) => return self.unanswered(StatusCode::GATEWAY_TIMEOUT, "it took too long", Some(caller)),
        };
        let (parts, body) = response.into_parts();
        let (pipe, piped) = mpsc::channel(PIPED);
        drop(caller.send(Response::from_parts(parts, Piped(piped).boxed_unsync())));
        match timeout_at(until, self.pass_on(body, pipe)).await {
            Ok(Ok(())) => true,
            Ok(Err(why)) => self.unanswered(StatusCode::BAD_GATEWAY, &why, None),
            Err(_) => self.unanswered(StatusCode::GATEWAY_TIMEOUT, "it took too long", None),
        }
    }

    /// Reads the answer to its end. A caller that takes nothing for the drain time is left behind: its slowness must
    /// not keep the resource closed.
    async fn pass_on(&self, mut body: Incoming, pipe: mpsc::Sender<Piece>) -> Result<(), String> {
        let mut pipe = Some(pipe);
        while let Some(frame) = body.frame().await {
            let (piece, broken) = match frame {
                Ok(frame) => (Ok(frame), None),
                Err(error) => (Err("the service broke off its answer".into()), Some(error.to_string())),
            };
            if let Some(open) = &pipe
                && !matches!(timeout(self.config.drain, open.send(piece)).await, Ok(Ok(())))
            {
                pipe = None;
            }
            if let Some(why) = broken {
                return Err(why);
            }
        }
        Ok(())
    }

    fn unanswered(&self, status: StatusCode, why: &str, caller: Option<Caller>) -> bool {
        self.gate.tally.unanswered.add(1);
        tracing::warn!(event = "fence_unanswered", why, "the service did not answer");
        let detail = "the service did not answer: it may have done it, or may still do it";
        if let Some(caller) = caller {
            drop(caller.send(text(problem::unknown(status, detail))));
        }
        false
    }

    async fn end(&self, pass: &Pass) {
        if let Pass::Noted(_, _, flight) = pass {
            self.gate.leave(flight).await;
        }
    }

    /// Whether the request may be sent, and its note.
    async fn admit(&self, parts: &Parts, caller: &Caller) -> Result<Pass, Response<String>> {
        if self.is_too_large(parts) {
            let code = "too_large";
            return Err(problem::problem(StatusCode::PAYLOAD_TOO_LARGE, code, "the body is too large", ""));
        }
        if parts.method == Method::CONNECT {
            let code = "method_not_allowed";
            return Err(problem::problem(StatusCode::METHOD_NOT_ALLOWED, code, "no tunnels", ""));
        }
        if reads(&parts.method) {
            return Ok(Pass::Unordered);
        }
        let Some(fence) = self.config.naming.find(parts) else {
            let why = "no fence is declared for this path";
            return match self.config.unmatched {
                Unmatched::Pass => Ok(Pass::Unordered),
                Unmatched::Refuse => Err(problem::problem(StatusCode::FORBIDDEN, "no_fence", why, "")),
            };
        };
        let read = headers::read(&parts.headers, &fence, self.config.checker.as_deref());
        let presented = read.map_err(|error| problem::invalid(&error))?;
        let begun = Instant::now();
        let asked = match &presented {
            Ok(None) => Err(FenceError::Rejected(Rejection::MissingToken)),
            Ok(Some(ask)) => self.ask(&fence, ask.grant(), caller).await,
            Err(_) if !self.rollout.stage(fence.guard()).checks() => Ok(None),
            Err(refusal) => Err(FenceError::Rejected(Rejection::Untrusted(refusal.clone()))),
        };
        self.rollout.checked(fence.guard(), begun.elapsed());
        let ask = presented.ok().flatten();
        let (outcome, flight) = match asked {
            Ok(flight) => (Ok(()), flight),
            Err(error) => (Err(error), None),
        };
        self.rollout.settle(&fence, ask.as_ref(), outcome).map_err(|error| refusal(&error))?;
        Ok(match (flight, ask) {
            (Some(flight), Some(ask)) => Pass::Noted(fence, ask.grant().clone(), flight),
            _ => Pass::Unordered,
        })
    }

    /// Asks the store as far as the stage goes: from `enforce` on the request is noted.
    async fn ask(
        &self,
        fence: &Fence,
        grant: &Grant,
        caller: &Caller,
    ) -> Result<Option<Flight>, FenceError<Failure>> {
        let stage = self.rollout.stage(fence.guard());
        if !stage.checks() {
            return Ok(None);
        }
        if !stage.enforces(fence.guard()) {
            return self.gate.flights.advance(fence, grant).await.map(|()| None);
        }
        if !self.gate.flights.is_durable() {
            return Err(FenceError::Store("a state in memory is for tests, not for this stage".into()));
        }
        self.gate.tally.waiting.add(1);
        let gone = || caller.is_closed();
        let entered = self.gate.enter(fence, grant, self.config.patience, gone).await;
        self.gate.tally.waiting.sub(1);
        entered.map(Some)
    }

    fn is_too_large(&self, parts: &Parts) -> bool {
        let length = parts.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        length.is_some_and(|length| length > self.config.limits.body_bytes)
    }
}

fn refusal(error: &FenceError<Failure>) -> Response<String> {
    match error {
        FenceError::Rejected(rejection) => problem::refusal(rejection),
        FenceError::Store(error) if error.is::<Closed>() => {
            let mut closed: Response<String> =
                problem::problem(StatusCode::SERVICE_UNAVAILABLE, "not_drained", &error.to_string(), "");
            closed.headers_mut().insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
            closed
        }
        FenceError::Store(why) => {
            tracing::error!(%why, "the state of the fence is out of reach");
            problem::unavailable("the state of the fence is out of reach")
        }
        FenceError::Corrupt(why) => {
            tracing::error!(why, "the fence keeps an impossible row");
            problem::unavailable("the state of the fence is out of reach")
        }
    }
}
