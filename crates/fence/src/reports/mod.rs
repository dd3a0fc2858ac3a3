//! Reports to the lock service: that a fence is at work, and what it rejected.
//!
//! [`Reports`] is an [`Observer`]: it remembers rejected stale tokens by prefix. [`Reports::take`] gives what is to be told, one [`Report`] for each declared prefix; [`Report::body`] is the body of
//! `POST /v1/fences/report`, for whatever client the program has. [`send`] is one over plain HTTP, and [`keep`] does it all.
//!
//! Grants under a prefix whose fence enforces then say `fenced`, and a resource's page shows the rejections. A report
//! that is lost loses a number on a page; no decision rests on it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use tokio::time::Instant;

use crate::rollout::{Decision, Observer, Override, Rollout, Stage};
use crate::{Ask, Fence, Rejection};

/// How often to report: a report counts for five minutes.
pub const EVERY: Duration = Duration::from_secs(60);
/// How often to look for something new to tell.
const LOOK: Duration = Duration::from_secs(1);
/// Rejections of one report; what comes on top is counted by the fence's own metrics alone.
const MOST: usize = 100;
/// How long the service may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be told of one prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    prefix: String,
    enforces: bool,
    rejections: Vec<Rejected>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rejected {
    resource: String,
    fencing_token: u64,
    highest_token: u64,
}

impl Report {
    /// The body of `POST /v1/fences/report`.
    pub fn body(&self) -> String {
        serde_json::to_string(self).expect("a report has nothing that JSON has not")
    }
}

/// Remembers what is to be told, and passes everything on to another observer.
#[derive(Debug)]
pub struct Reports<O> {
    inner: O,
    rejected: Mutex<BTreeMap<String, Vec<Rejected>>>,
}

impl<O: Observer> Reports<O> {
    /// In front of this observer.
    pub fn new(inner: O) -> Self {
        Self { inner, rejected: Mutex::default() }
    }

    /// What is to be told now: one report for each prefix of the roll-out. Only what `Stage` enforces for every
    /// resource of a prefix counts as enforced.
    pub fn take(&self, rollout: &Rollout) -> Vec<Report> {
        let mut rejected = std::mem::take(&mut *self.rejected.lock().unwrap_or_else(PoisonError::into_inner));
        let one = |status: crate::rollout::Status| Report {
            enforces: matches!(status.stage, Stage::Enforce | Stage::Require) && status.in_force.is_none(),
            rejections: rejected.remove(&status.prefix).unwrap_or_default(),
            prefix: status.prefix,
        };
        rollout.status().into_iter().map(one).collect()
    }
}

impl<O: Observer> Observer for Reports<O> {
    fn decided(&self, prefix: &str, stage: Stage, fence: &Fence, ask: Option<&Ask>, decision: Decision<'_>) {
        if let Some(Rejection::Stale { presented, highest }) = decision.rejection()
            && presented != highest
        {
            let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
            let list = rejected.entry(prefix.to_owned()).or_default();
            if list.len() < MOST {
                let (fencing_token, highest_token) = (presented.get(), highest.get());
                list.push(Rejected { resource: fence.guard().to_string(), fencing_token, highest_token });
            }
        }
        self.inner.decided(prefix, stage, fence, ask, decision);
    }

    fn checked(&self, prefix: &str, took: Duration) {
        self.inner.checked(prefix, took);
    }

    fn switched(&self, prefix: &str, from: Stage, to: Stage) {
        self.inner.switched(prefix, from, to);
    }

    fn overridden(&self, prefix: &str, made: &Override) {
        self.inner.overridden(prefix, made);
    }
}

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The address of the service is none, or not plain HTTP.
    #[error("{0:?} is no http:// address")]
    Address(String),
    /// The service did not answer.
    #[error("the service did not answer: {0}")]
    Unanswered(Box<dyn std::error::Error + Send + Sync>),
    /// The service refused it.
    #[error("the service refused the report: {0}")]
    Refused(StatusCode),
}

/// Sends a report to the service at this address (`http://host:port`), with a credential if one is given.
///
/// # Errors
/// It was not taken; the next one comes anyway.
pub async fn send(service: &str, credential: Option<&str>, report: &Report) -> Result<(), SendError> {
    let url = format!("{}/v1/fences/report", service.trim_end_matches('/'));
    let invalid = || SendError::Address(service.to_owned());
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let mut request = Request::post(uri).header(header::CONTENT_TYPE, "application/json");
    if let Some(credential) = credential {
        request = request.header(header::AUTHORIZATION, format!("Bearer {credential}"));
    }
    let request = request.body(Full::new(Bytes::from(report.body()))).map_err(|_| invalid())?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let sent = tokio::time::timeout(PATIENCE, client.request(request)).await;
    match sent.map_err(|late| SendError::Unanswered(late.into()))? {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(SendError::Refused(response.status())),
        Err(error) => Err(SendError::Unanswered(error.into())),
    }
}

/// Reports to the service, for ever: what is new within a second or two, and that the fence is at work once a minute.
/// Errors are left to `failed`; it goes on after them.
pub async fn keep<O: Observer>(
    reports: &Reports<O>,
    rollout: &Rollout,
    service: &str,
    credential: Option<&str>,
    failed: impl Fn(&SendError),
) {
    let mut told: BTreeMap<String, (bool, Instant)> = BTreeMap::new();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for report in reports.take(rollout) {
            let before = told.get(&report.prefix);
            let known =
                before.is_some_and(|(enforces, at)| *enforces == report.enforces && at.elapsed() < EVERY);
            if known && report.rejections.is_empty() {
                continue;
            }
            match send(service, credential, &report).await {
                Ok(()) => drop(told.insert(report.prefix, (report.enforces, Instant::now()))),
                Err(error) => failed(&error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::{FencingToken, ResourceName, WallTime};

    use super::*;
    use crate::{FenceError, Grant};

    #[test]
    fn a_report_says_what_was_rejected_and_once() {
        let reports = std::sync::Arc::new(Reports::new(()));
        let rollout = Rollout::new(Stage::Count, reports.clone(), || WallTime(0));
        rollout.switch("books/", Stage::Enforce);
        let fence = Fence::of(&ResourceName::new("books/2026").unwrap());
        let token = |number| FencingToken::new(number).unwrap();
        let ask = Grant::exclusive(fence.guard().clone(), token(33)).write();
        for _ in 0..2 * MOST {
            let stale = Rejection::Stale { presented: token(33), highest: token(34) };
            let _ = rollout.settle::<()>(&fence, Some(&ask), Err(FenceError::Rejected(stale)));
        }
        let told = reports.take(&rollout);
        assert_eq!((told.len(), told[0].rejections.len(), told[0].enforces), (1, MOST, true));
        let again = reports.take(&rollout);
        assert_eq!(again[0].body(), r#"{"prefix":"books/","enforces":true,"rejections":[]}"#);
        rollout.switch("books/", Stage::Shadow);
        assert!(!reports.take(&rollout)[0].enforces, "a shadow protects nothing");
    }
}
