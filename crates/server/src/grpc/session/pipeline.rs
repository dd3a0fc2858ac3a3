//! The requests of one stream on their way through the node: a frame goes in as one batch, and whatever one commit
//! answers comes out as one.

use std::sync::Arc;

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Command, Reply};
use leasehold_node::{Durable, Lane, Sending, SubmitError};
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::request::Ask;
use leasehold_types::{LeaseId, SessionId};
use tokio::time::Instant;

use super::request::{self, Asked, Done};
use crate::http::{App, outcome};
use crate::metrics::{Attempt, Scope};
use crate::traces::Traced;

/// Requests of one stream that wait to be answered, waiters included. Far above what a batching client has under way;
/// one more is refused, so that keep-alives are always read.
const PENDING: usize = 16_384;

/// See the module.
pub(super) struct Pipeline {
    app: Arc<App>,
    session: SessionId,
    lane: Lane<Tag>,
    /// Answered without the node.
    refused: Vec<Done>,
    /// Reused from batch to batch.
    answers: Vec<(Tag, Result<Durable<Reply>, SubmitError>)>,
}

/// What is kept of a request until its answer comes.
struct Tag {
    asked: Asked,
    attempt: Option<Attempt>,
    traced: Option<Box<Traced>>,
}

impl Pipeline {
    pub(super) fn new(app: Arc<App>, session: SessionId) -> Self {
        let lane = app.handle.lane();
        Self { app, session, lane, refused: Vec::new(), answers: Vec::new() }
    }

    /// Requests that are not answered yet.
    pub(super) fn pending(&self) -> usize {
        self.lane.pending() + self.refused.len()
    }

    /// Whether an acquire under this id is not answered yet.
    pub(super) fn is_acquiring(&self, lease_id: LeaseId) -> bool {
        self.lane.tags().any(|tag| matches!(tag.asked, Asked::Acquire(_, lease) if lease == lease_id))
    }

    /// Takes what one frame asks, in order.
    pub(super) fn take(&mut self, requests: Vec<pb::Request>, keep_alive: Option<pb::KeepAlive>) {
        let mut room = PENDING.saturating_sub(self.pending());
        let Self { app, session, lane, refused, .. } = self;
        let sending = lane.begin(requests.len() + 1);
        let mut frame = Frame { app, refused, sending, now: Instant::now(), last: None };
        for request in requests {
            let asked = Asked::of(&request);
            let traced = traced(app, &request);
            let command = if room > 0 { request::command(app, *session, request) } else { Err(too_many()) };
            room = room.saturating_sub(1);
            frame.put(asked, command, traced);
        }
        if let Some(keep_alive) = keep_alive {
            let asked = Asked::KeepAlive(keep_alive.id);
            let traced = app.traces.streamed("Session keep-alive", "");
            frame.put(asked, request::keep_alive(app, *session, keep_alive), traced);
        }
        frame.sending.send();
    }

    /// Waits until something is answered, and adds everything that is by then. Cancel-safe.
    pub(super) async fn done(&mut self, done: &mut Vec<Done>) {
        if self.refused.is_empty() {
            self.lane.answers(&mut self.answers).await;
        }
        done.append(&mut self.refused);
        let now = Instant::now();
        for (tag, answer) in self.answers.drain(..) {
            done.push(finish(&self.app, tag, self.app.told(outcome(answer)), now));
        }
    }

    /// Stays until everything is answered, for a stream that broke: its waiters keep their places meanwhile.
    pub(super) async fn outlive(mut self) {
        let mut unheard = Vec::new();
        while self.pending() > 0 {
            self.done(&mut unheard).await;
            unheard.clear();
        }
    }
}

/// An acquire may be part of a trace. For what else is asked one is begun, as often as the settings say.
fn traced(app: &App, request: &pb::Request) -> Option<Box<Traced>> {
    let (name, traceparent) = match &request.ask {
        Some(Ask::Acquire(acquire)) => ("Session acquire", acquire.traceparent.as_str()),
        Some(Ask::Release(_)) => ("Session release", ""),
        Some(Ask::Renew(_)) => ("Session renew", ""),
        Some(Ask::Proclaim(_)) => ("Session proclaim", ""),
        Some(Ask::Resign(_)) => ("Session resign", ""),
        None => return None,
    };
    app.traces.streamed(name, traceparent)
}

/// What one frame asks, on its way into the lane: each command goes straight to its place there.
struct Frame<'a> {
    app: &'a App,
    refused: &'a mut Vec<Done>,
    sending: Sending<'a, Tag>,
    now: Instant,
    /// Where the last acquire is counted.
    last: Option<Arc<Scope>>,
}

impl Frame<'_> {
    fn put(&mut self, asked: Asked, command: Result<Command, Problem>, traced: Option<Box<Traced>>) {
        let command = match command {
            Ok(command) => command,
            Err(problem) => return self.refused.push(Done { asked, outcome: Err(problem) }),
        };
        let attempt = match &command {
            Command::Acquire(acquire) => {
                Some(self.app.metrics.acquire_begins(&self.app.tenant, acquire, self.now, &mut self.last))
            }
            _ => None,
        };
        let tag = Tag { asked, attempt, traced };
        match self.app.call(None, command) {
            Ok(call) => {
                let trail = tag.traced.as_ref().map(|traced| Arc::clone(&traced.trail));
                self.sending.add(tag, call, trail);
            }
            Err(problem) => self.refused.push(finish(self.app, tag, Err(problem), self.now)),
        }
    }
}

fn too_many() -> Problem {
    Problem::new(ErrorCode::Overloaded, "too many requests of this stream wait")
}

/// Counts what came of a request, as is known at this time.
fn finish(app: &App, tag: Tag, outcome: Result<Reply, Problem>, now: Instant) -> Done {
    let Tag { asked, attempt, traced } = tag;
    if let Some(traced) = traced {
        app.traces.answered(*traced, outcome.as_ref().err());
    }
    if let Some(attempt) = attempt {
        attempt.ends(&outcome, now);
    }
    match (&outcome, asked) {
        (Err(problem), Asked::Release(..)) => app.metrics.release_failed(&app.tenant, problem.code),
        (Err(problem), Asked::Renew(_, lease_id)) => app.renewal_refused(Some(lease_id), problem),
        (Err(problem), Asked::KeepAlive(_)) => app.renewal_refused(None, problem),
        _ => {}
    }
    Done { asked, outcome }
}
