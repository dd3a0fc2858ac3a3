//! Reports as the service gets them.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use leasehold_fence::reports::{Reports, SendError, keep, send};
use leasehold_fence::rollout::{Rollout, Stage};
use leasehold_fence::{Fence, FenceError, Rejection};
use leasehold_types::{FencingToken, WallTime};
use support::{grant, name};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

type Got = mpsc::UnboundedSender<(HeaderMap, String)>;

async fn take(State(got): State<Got>, headers: HeaderMap, body: String) -> StatusCode {
    let status =
        if headers.contains_key("authorization") { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
    got.send((headers, body)).unwrap();
    status
}

/// A service that takes reports of callers with a credential.
async fn service() -> (String, mpsc::UnboundedReceiver<(HeaderMap, String)>) {
    let (got, reports) = mpsc::unbounded_channel();
    let router = Router::new().route("/v1/fences/report", post(take)).with_state(got);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, reports)
}

fn rejecting() -> (Arc<Reports<()>>, Rollout) {
    let reports = Arc::new(Reports::new(()));
    let rollout = Rollout::new(Stage::Count, reports.clone(), || WallTime(0));
    rollout.switch("books/", Stage::Enforce);
    let token = |number| FencingToken::new(number).unwrap();
    let stale = Rejection::Stale { presented: token(33), highest: token(34) };
    let (fence, ask) = (Fence::of(&name("books/2026")), grant("books/2026", 33).write());
    assert!(rollout.settle::<()>(&fence, Some(&ask), Err(FenceError::Rejected(stale))).is_err());
    (reports, rollout)
}

#[tokio::test]
async fn a_rejection_reaches_the_service() {
    let ((url, mut got), (reports, rollout)) = (service().await, rejecting());
    let keeping = tokio::spawn(async move {
        keep(&reports, &rollout, &url, Some("secret"), |error| panic!("{error}")).await;
    });
    let (headers, body) = got.recv().await.unwrap();
    keeping.abort();
    assert_eq!(
        (&headers["authorization"], &headers["content-type"]),
        (&"Bearer secret".parse().unwrap(), &"application/json".parse().unwrap())
    );
    let rejection = r#"{"resource":"books/2026","fencingToken":33,"highestToken":34}"#;
    assert_eq!(body, format!(r#"{{"prefix":"books/","enforces":true,"rejections":[{rejection}]}}"#));
}

#[tokio::test]
async fn what_is_not_taken_is_said() {
    let ((url, _got), (reports, rollout)) = (service().await, rejecting());
    let report = &reports.take(&rollout)[0];
    assert!(matches!(send(&url, None, report).await, Err(SendError::Refused(status)) if status == 401));
    assert!(matches!(
        send("no address", None, report).await,
        Err(SendError::Address(_) | SendError::Unanswered(_))
    ));
    assert!(matches!(send("http://127.0.0.1:1", None, report).await, Err(SendError::Unanswered(_))));
}
