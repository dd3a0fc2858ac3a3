//! Keeps a session connected: tries one endpoint after the other, resumes, renews, listens.

use std::sync::Arc;
use std::time::Duration;

use leasehold_api::ErrorCode;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use tonic::{Status, Streaming};
use tracing::debug;

use super::awake::Hearing;
use super::outbound::Frames;
use super::{SessionEnd, Shared};
use crate::calls::{problem_of, trouble};
use crate::clock;
use crate::connections::{Connections, SessionStream};
use crate::deadline::{Phase, Stamp};
use crate::error::Refused;
use crate::retry::Backoff;

/// The shortest pause between two tries.
const RETRY_FIRST: Duration = Duration::from_millis(20);
/// An orderly close waits this long for its confirmation; without it the session ends with its ttl.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// A pause of this process worth reporting; shorter ones are ordinary scheduling.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a connection ended.
enum Broken {
    /// Try again, perhaps elsewhere.
    Retry(String),
    /// The session is over.
    Over(SessionEnd),
}

/// Runs until the session is over or closed.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let shared = EndsWithTask(shared);
    tokio::select! {
        biased;
        () = stay_connected(&shared.0) => {}
        never = shared.0.wire.wake_the_late() => match never {},
    }
}

/// When the runtime that a session lives on is gone, nobody renews it and nobody would wake its callers.
struct EndsWithTask(Arc<Shared>);

impl Drop for EndsWithTask {
    fn drop(&mut self) {
        self.0.end(&SessionEnd::Closed);
    }
}

async fn stay_connected(shared: &Arc<Shared>) {
    let most = (shared.ttl / 8).clamp(RETRY_FIRST, Duration::from_secs(1));
    let mut backoff = Backoff::new(RETRY_FIRST, most);
    for endpoint in shared.settings.endpoints.iter().cycle() {
        let opened_before = shared.confirmations();
        let broken = tokio::select! {
            broken = talk(shared, endpoint) => broken,
            () = closed_in_vain(shared) => Broken::Over(SessionEnd::Closed),
        };
        shared.disconnected();
        match broken {
            Broken::Over(end) => return shared.end(&end),
            Broken::Retry(error) => {
                debug!(%error, "the session's connection broke");
                shared.miss(&error);
            }
        }
        if shared.confirmations() != opened_before {
            backoff.reset();
        }
        tokio::time::sleep(backoff.pause(clock::random())).await;
    }
}

/// Completes when a close has waited long enough.
async fn closed_in_vain(shared: &Shared) {
    shared.closing.notified().await;
    tokio::time::sleep(CLOSE_PATIENCE).await;
}

async fn talk(shared: &Arc<Shared>, endpoint: &Connections) -> Broken {
    let patience = shared.answer_patience();
    let sent = clock::now();
    let does_not_answer = |_| Broken::Retry(format!("{} does not answer", endpoint.uri()));
    let connection = match tokio::time::timeout(patience, endpoint.connect()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Broken::Retry(format!("{}: {error}", endpoint.uri())),
        Err(elapsed) => return does_not_answer(elapsed),
    };
    let opening = tokio::time::timeout(patience, open(shared, connection.stream)).await;
    let broken = match opening.map_err(does_not_answer).flatten() {
        Ok((inbound, first)) => match opened(shared, first, sent) {
            Ok(()) => listen(shared, inbound, patience).await,
            Err(broken) => broken,
        },
        Err(broken) => broken,
    };
    if matches!(broken, Broken::Retry(_)) {
        endpoint.avoid(connection.number).await;
    }
    broken
}

/// Listens and renews until the connection breaks.
async fn listen(shared: &Shared, mut inbound: Streaming<pb::ServerFrame>, patience: Duration) -> Broken {
    let jitter = clock::random();
    let look = (shared.ttl / 12).clamp(clock::LOOK / 5, Duration::from_secs(1));
    let mut hearing = Hearing::new();
    loop {
        let now = clock::now();
        if shared.wire.oldest_flying().is_some_and(|sent| now.since(sent) > patience) {
            return Broken::Retry("a keep-alive was not answered in time".to_owned());
        }
        let due = shared.renewal_due(jitter);
        if now >= due && !shared.wire.is_keeping_alive() {
            shared.wire.keep_alive();
        }
        let nap = nap(now, due, look);
        // The timer comes first: frames that come without a pause must not keep a renewal back.
        let broken = tokio::select! {
            biased;
            () = tokio::time::sleep(nap) => None,
            broken = hear(shared, &mut inbound, &mut hearing) => Some(broken),
        };
        if let Some(broken) = broken {
            return broken;
        }
        let gap = clock::now().since(now).saturating_sub(nap);
        if gap >= PAUSE {
            shared.pause(gap);
        }
    }
}

/// Takes frames until the connection breaks. Cancel-safe: a frame is taken as soon as it is there.
async fn hear(shared: &Shared, inbound: &mut Streaming<pb::ServerFrame>, hearing: &mut Hearing) -> Broken {
    loop {
        let callers = shared.wire.lock().places.len();
        match hearing.wait_for(inbound.message(), callers).await {
            Ok(Some(frame)) => {
                if let Err(broken) = take(shared, frame) {
                    return broken;
                }
            }
            Ok(None) if shared.wire.is_closing() => return Broken::Over(SessionEnd::Closed),
            Ok(None) => return Broken::Retry("the server ended the stream".to_owned()),
            Err(status) => return broken_by(shared, &status),
        }
    }
}

/// Until the next look: soon enough for the renewal, and for an answer that does not come.
fn nap(now: Stamp, due: Stamp, look: Duration) -> Duration {
    let until_due = due.since(now);
    if until_due.is_zero() { clock::LOOK / 5 } else { until_due.min(look) }
}

async fn open(
    shared: &Arc<Shared>,
    mut stream: SessionStream,
) -> Result<(Streaming<pb::ServerFrame>, pb::ServerFrame), Broken> {
    let reporter = Arc::clone(shared);
    let outbound = shared.wire.connect(shared.opening(), Box::new(move || reporter.report()));
    let opening = stream.open(outbound, Frames).await;
    let mut inbound = opening.map_err(|status| broken_by(shared, &status))?;
    match inbound.message().await {
        Ok(Some(first)) => Ok((inbound, first)),
        Ok(None) => Err(Broken::Retry("the server ended the stream".to_owned())),
        Err(status) => Err(broken_by(shared, &status)),
    }
}

fn opened(shared: &Shared, mut first: pb::ServerFrame, sent: Stamp) -> Result<(), Broken> {
    let Some(opened) = first.opened.take() else {
        return Err(Broken::Retry("the server began without opening".to_owned()));
    };
    // What was lost meanwhile is told first: the opening confirms only what is left.
    for loss in std::mem::take(&mut first.losses) {
        shared.lost(&loss);
    }
    shared.opened(&opened, first.epoch, sent)?;
    take(shared, first)
}

fn take(shared: &Shared, mut frame: pb::ServerFrame) -> Result<(), Broken> {
    shared.check_epoch(frame.epoch)?;
    let not_let_in = take_not_let_in(shared, &mut frame);
    let confirmed: Vec<_> = frame.kept_alive.iter().filter_map(|kept| shared.kept_alive(kept)).collect();
    for loss in &frame.losses {
        shared.lost(loss);
    }
    // Last: what ended with the same frame is not confirmed by it (R7).
    shared.wire.answered(frame.answers, !confirmed.is_empty());
    for waiter in confirmed.into_iter().flatten() {
        // Somebody who has left does not mind.
        let _ = waiter.send(());
    }
    match frame.end.or(not_let_in) {
        Some(problem) => Err(broken_by_problem(shared, &problem)),
        None => Ok(()),
    }
}

impl From<SessionEnd> for Broken {
    fn from(end: SessionEnd) -> Self {
        Self::Over(end)
    }
}

impl From<String> for Broken {
    fn from(error: String) -> Self {
        Self::Retry(error)
    }
}

/// The credential of a connection may be revoked while a new one lies ready. What is refused for that is left without an
/// answer, and asked again on a connection with the new one; gives why the present one is of no use any more.
fn take_not_let_in(shared: &Shared, frame: &mut pb::ServerFrame) -> Option<pb::Problem> {
    let not_let_in = |answer: &mut pb::Answer| match &answer.outcome {
        Some(Outcome::Problem(problem)) => may_be_let_in(shared, &Refused::from_wire(problem)),
        _ => false,
    };
    match frame.answers.extract_if(.., not_let_in).last()?.outcome {
        Some(Outcome::Problem(problem)) => Some(problem),
        _ => None,
    }
}

/// Whether a session that was let in before may be let in again, with what is in the credential's file by then. Only as
/// long as its leases live: whoever is locked out for good is told so.
fn may_be_let_in(shared: &Shared, refused: &Refused) -> bool {
    refused.code == ErrorCode::Unauthenticated
        && shared.confirmations() > 0
        && shared.life().phase(clock::now()) < Phase::Lost
}

/// A stream that fails carries our own problem, or is the transport's trouble.
fn broken_by(shared: &Shared, status: &Status) -> Broken {
    match problem_of(status) {
        Some(problem) => broken_by_problem(shared, &problem),
        None => Broken::Retry(trouble(status)),
    }
}

fn broken_by_problem(shared: &Shared, problem: &pb::Problem) -> Broken {
    let refused = Refused::from_wire(problem);
    if refused.is_retryable() || may_be_let_in(shared, &refused) {
        return Broken::Retry(refused.to_string());
    }
    Broken::Over(match refused.code {
        ErrorCode::LeaseNotHeld => SessionEnd::Ended,
        _ => SessionEnd::Refused(refused),
    })
}

#[cfg(test)]
mod tests;
