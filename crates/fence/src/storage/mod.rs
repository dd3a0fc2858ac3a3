//! A reference storage service: files that refuse the stale writer, behind a small HTTP interface.
//!
//! | call | does |
//! |---|---|
//! | `POST /v1/writes` | `{resourceId, fencingToken, step, writePayload: {filePath, mutationType: "APPEND"\|"PUT", bytes: base64}}`; snake_case is understood too |
//! | `POST /v1/claims` | `{resourceId, fencingToken}`: raises the maximum before the first read |
//! | `GET /v1/files/{path}` | what was acknowledged of a file |
//! | `GET /v1/resources/{resourceId}` | the highest token and how many writes of it were admitted |
//! | `GET /healthz`, `GET /metrics` | alive; the fence's counters |
//!
//! Guarantee: **atomic**. One maximum for each resource, over all its files; a file belongs to the lock of its first
//! write, and a token of another lock is refused as of the wrong scope. `step` counts the writes of a grant from 1; an
//! APPEND needs it, and a retried step is applied once: the answer to the retry says `applied: false`. A semaphore's holder
//! adds its `permit`: each has a maximum and steps of its own.
//!
//! What it survives: a crash at any time. The write and the advance of the fence are committed together to an SQLite
//! database, then done to the file at a place fixed by the commit; after a crash the last one is done again, which
//! changes nothing. SQLite rather than a journal of its own: the fence is the one of [`crate::sqlite`], tested there,
//! and one intent at a time needs no log.
//!
//! What it does not do: authenticate, encrypt, replicate. Files changed by hand are not noticed.

mod files;
mod path;
mod service;
mod store;
mod wire;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use path::{FilePath, InvalidPath};
use service::Service;
pub use store::{Change, Error, Store, Write, Written};
use tokio::net::TcpListener;

use crate::http::Failure;
use crate::metrics::FenceMetrics;
use crate::rollout::{Rollout, Stage};
use crate::serve::{self, Limits};

/// How long requests under way may take when the service ends.
const GRACE: Duration = Duration::from_secs(10);

/// The service, ready to serve.
#[derive(Debug)]
pub struct Storage {
    service: Arc<Service>,
    limits: Limits,
}

impl Storage {
    /// Over this directory, which belongs to it alone. A body may have 16 MiB.
    ///
    /// # Errors
    /// The directory is in use, or cannot be read and written.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let metrics = Arc::new(FenceMetrics::default());
        // No overrides are made here, so nobody asks for the time.
        let rollout = Rollout::new(Stage::Require, metrics.clone(), || leasehold_types::WallTime(0));
        let store = Arc::new(Mutex::new(Store::open(directory)?));
        let limits = Limits { body_bytes: 16 * 1024 * 1024, ..Limits::default() };
        Ok(Self {
            service: Arc::new(Service { store, rollout, metrics, body_bytes: limits.body_bytes }),
            limits,
        })
    }

    /// Serves until `shutdown` is ready; then accepts no more and waits for the requests under way.
    ///
    /// # Errors
    /// None at present; a listener that fails is tried again.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { service, limits } = self;
        let handler = move |request, _| service.clone().answer(request);
        serve::serve(listener, limits, GRACE, shutdown, handler).await
    }
}
