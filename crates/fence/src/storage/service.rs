//! One request to the storage.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use leasehold_types::ResourceName;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::path::FilePath;
use super::store::{Error, NoFile, Store};
use super::wire::{ClaimRequest, ResourceAnswer, WriteAnswer, WriteRequest};
use crate::http::problem;
use crate::metrics::FenceMetrics;
use crate::rollout::Rollout;
use crate::serve::{Body, text, whole};
use crate::{Ask, Fence, FenceError, Grant};

#[derive(Debug)]
pub(super) struct Service {
    pub(super) store: Arc<Mutex<Store>>,
    pub(super) rollout: Rollout,
    pub(super) metrics: Arc<FenceMetrics>,
    pub(super) body_bytes: u64,
}

/// An answer that says no.
type Refusal = Box<Response<String>>;
type Outcome = Result<Response<Body>, Refusal>;

impl Service {
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let outcome = match (request.method(), path.as_str()) {
            (&Method::POST, "/v1/writes") => self.write(request).await,
            (&Method::POST, "/v1/claims") => self.claim(request).await,
            (&Method::GET, "/healthz") => Ok(plain("text/plain", "ok\n")),
            (&Method::GET, "/metrics") => Ok(plain("text/plain; version=0.0.4", self.metrics.page())),
            (&Method::GET, path) => match path.strip_prefix("/v1/") {
                Some(path) => self.look(path).await,
                None => Err(not_found()),
            },
            _ => Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "no such call")),
        };
        outcome.unwrap_or_else(|refusal| text(*refusal))
    }

    async fn write(&self, request: Request<Incoming>) -> Outcome {
        let asked: WriteRequest = self.body(request).await?;
        let write = asked.meant().map_err(|why| bad(&why))?;
        let (written, took, write) =
            self.with(move |store| (store.write(&write), store.check_took(), write)).await?;
        self.checked(write.ask.grant(), took);
        let (outcome, written) = match written {
            Ok(written) => (Ok(()), Some(written)),
            Err(error) => (Err(error), None),
        };
        self.settle(&write.ask, outcome)?;
        json(&WriteAnswer::new(&write, &written.expect("at this stage every error is a refusal")))
    }

    async fn claim(&self, request: Request<Incoming>) -> Outcome {
        let asked: ClaimRequest = self.body(request).await?;
        let grant = asked.meant().map_err(|why| bad(&why))?;
        let (claimed, took, grant) =
            self.with(move |store| (store.claim(&grant), store.check_took(), grant)).await?;
        self.checked(&grant, took);
        self.settle(&grant.write(), claimed)?;
        self.resource(grant.resource().clone()).await
    }

    fn checked(&self, grant: &Grant, took: Option<Duration>) {
        if let Some(took) = took {
            self.rollout.checked(grant.resource(), took);
        }
    }

    /// Counts and logs; what the fence rejects is refused.
    fn settle(&self, ask: &Ask, outcome: Result<(), Error>) -> Result<(), Refusal> {
        let fence = Fence::of(ask.grant().resource());
        self.rollout.settle(&fence, Some(ask), outcome).map_err(|error| match error {
            FenceError::Rejected(rejection) => Box::new(problem::refusal(&rejection)),
            error => unavailable(&error),
        })
    }

    async fn look(&self, path: &str) -> Outcome {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
        if let Some(path) = path.strip_prefix("files/").and_then(decoded) {
            let path = FilePath::parse(&path).map_err(|error| bad(&error.to_string()))?;
            let found = self.with(move |store| store.read(&path)).await?;
            let bytes = found.map_err(|error| unavailable(&error))?.ok_or_else(not_found)?;
            return Ok(plain("application/octet-stream", bytes));
        }
        let name = path.strip_prefix("resources/").and_then(decoded).ok_or_else(not_found)?;
        self.resource(ResourceName::new(&name).map_err(|error| bad(&error.to_string()))?).await
    }

    async fn resource(&self, resource: ResourceName) -> Outcome {
        let (row, resource) = self.with(move |store| (store.resource(&resource), resource)).await?;
        let row = row.map_err(|error| unavailable(&error))?;
        let (highest_token, writes) = (row.map(|row| row.0), row.map_or(0, |row| row.1));
        json(&ResourceAnswer { resource_id: resource.as_str(), highest_token, writes })
    }

    /// Off the runtime's threads: the store waits for the disk.
    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Store) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let store = self.store.clone();
        let task = tokio::task::spawn_blocking(move || {
            act(&mut store.lock().unwrap_or_else(PoisonError::into_inner))
        });
        task.await.map_err(|_| Box::new(problem::unavailable("the storage is ending")))
    }

    /// A JSON body. Only so declared: a web page cannot send that to us unasked.
    async fn body<T: DeserializeOwned>(&self, request: Request<Incoming>) -> Result<T, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| kind.split(';').next() == Some("application/json"));
        if !is_json {
            let code = "unsupported_media_type";
            return Err(refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code,
                "the body must be application/json",
            ));
        }
        let limit = usize::try_from(self.body_bytes).unwrap_or(usize::MAX);
        let body = Limited::new(request.into_body(), limit).collect().await.map_err(|error| {
            match error.is::<http_body_util::LengthLimitError>() {
                true => refuse(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is too large"),
                false => bad("the body broke off"),
            }
        })?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| bad(&error.to_string()))
    }
}

fn unavailable(error: &Error) -> Refusal {
    if let FenceError::Store(error) = error
        && let Some(no_file) = error.downcast_ref::<NoFile>()
        && no_file.is_the_callers()
    {
        return bad(&no_file.to_string());
    }
    tracing::error!(%error, "the storage failed");
    Box::new(problem::unknown(StatusCode::SERVICE_UNAVAILABLE, "the storage failed; a retry by step is safe"))
}

fn bad(why: &str) -> Refusal {
    refuse(StatusCode::BAD_REQUEST, "bad_request", why)
}

fn not_found() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "not_found", "there is no such thing")
}

fn refuse(status: StatusCode, code: &str, why: &str) -> Refusal {
    Box::new(problem::problem(status, code, why, ""))
}

fn json(value: &impl Serialize) -> Outcome {
    let bytes = serde_json::to_vec(value).expect("answers have nothing that JSON has not");
    Ok(plain("application/json", bytes))
}

fn plain(kind: &'static str, bytes: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(whole(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
