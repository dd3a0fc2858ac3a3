//! Unary calls: at the first server that can be reached and does not say that another one is active.

use std::error::Error as _;
use std::time::Duration;

use prost::Message as _;
use tokio::time::timeout;
use tonic::{Response, Status};

use leasehold_proto::v1 as pb;

use crate::client::Settings;
use crate::clock;
use crate::connections::{Locks, root_cause};
use crate::error::Refused;
use crate::retry::Backoff;

/// One server has this long to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The service refused.
    Refused(Refused),
    /// Nobody could be reached.
    Unavailable(String),
}

impl CallError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(refused) => refused.is_retryable(),
            Self::Unavailable(_) => true,
        }
    }
}

impl Settings {
    /// Asks all servers again while the refusal may pass and there is patience: a change of the active node is over in a
    /// moment.
    pub(crate) async fn call_patiently<T, F>(&self, ask: impl Fn(Locks) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let give_up = clock::now().plus(self.patience);
        let mut backoff = Backoff::default();
        loop {
            match self.call(&ask).await {
                Err(error) if error.is_retryable() && clock::now() < give_up => {
                    tokio::time::sleep(backoff.pause(clock::random())).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Asks one server after the other. What is asked may be asked twice.
    pub(crate) async fn call<T, F>(&self, ask: impl Fn(Locks) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut why = CallError::Unavailable("no server".to_owned());
        for endpoint in &self.endpoints {
            let asked = async {
                let locks = endpoint.locks().await.map_err(CallError::Unavailable)?;
                ask(locks).await.map(Response::into_inner).map_err(|status| refused(&status))
            };
            why = match timeout(ANSWER, asked).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if !error.is_retryable() => return Err(error),
                Ok(Err(error)) => error,
                Err(_) => CallError::Unavailable(format!("{} does not answer", endpoint.uri())),
            };
        }
        Err(why)
    }
}

/// The problem that a status carries, or else the transport's trouble.
pub(crate) fn refused(status: &Status) -> CallError {
    match problem_of(status) {
        Some(problem) => CallError::Refused(Refused::from_wire(&problem)),
        None => CallError::Unavailable(trouble(status)),
    }
}

/// What the transport met, where a status carries no problem of ours: its own words are no more than "transport error".
pub(crate) fn trouble(status: &Status) -> String {
    match status.source() {
        Some(source) => root_cause(source),
        None => status.message().to_owned(),
    }
}

/// Our own problem, where a status carries one.
pub(crate) fn problem_of(status: &Status) -> Option<pb::Problem> {
    let bytes = status.metadata().get_bin("leasehold-problem-bin")?.to_bytes().ok()?;
    pb::Problem::decode(bytes).ok()
}
