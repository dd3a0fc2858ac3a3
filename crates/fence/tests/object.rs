//! Fenced objects: in memory as `object_store` has it, with ETags as S3 makes them, and over the requests of S3 against
//! moto, a stand-in.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use http_body_util::BodyExt;
use leasehold_fence::Fence;
use leasehold_fence::cas::{CasFence, CompareAndSet, MemoryStore, Versioned};
use leasehold_fence::conformance::{CasLines, agreement, cases, run, store};
use leasehold_fence::object::Objects;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::memory::InMemory;
use object_store::{ClientOptions, RetryConfig};
use support::{Yielding, grant, name, seed, suite, word};

fn objects() -> Objects {
    Objects::new(Arc::new(InMemory::new()), "fenced/things".into())
}

#[tokio::test]
async fn conditional_writes_keep_the_contract() {
    store(&objects()).await;
    run(&CasLines(CasFence::new(Yielding(objects()))), seed()).await;
}

/// A store whose version is a hash of the content, as the ETag of S3: equal bytes have equal versions.
#[derive(Default)]
struct ContentTags(MemoryStore);

fn tag(value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl CompareAndSet for ContentTags {
    type Version = u64;
    type Error = std::convert::Infallible;

    async fn read(&self, key: &str) -> Result<Option<Versioned<u64>>, Self::Error> {
        Ok(self.0.read(key).await?.map(|(value, _)| (value.clone(), tag(&value))))
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&u64>) -> Result<bool, Self::Error> {
        let found = self.0.read(key).await?;
        let (now, inner) = found.map(|(value, version)| (tag(&value), version)).unzip();
        if now.as_ref() != version { Ok(false) } else { self.0.put_if(key, value, inner.as_ref()).await }
    }
}

/// The reason why the token is in the body: with the ETag of S3, a claim that changed attributes alone would not change
/// the version, and the old holder's conditional write would pass.
#[tokio::test]
async fn a_claim_changes_the_version_even_if_the_value_stays() {
    let (fence, things) = (Fence::of(&name("r")), CasFence::new(ContentTags::default()));
    things.update(&fence, &grant("r", 5).write(), |_| b"same".to_vec()).await.expect("admitted");
    let (_, seen_by_old_holder) = things.store().read("r").await.expect("readable").expect("written");
    things.claim(&fence, &grant("r", 7)).await.expect("admitted");
    let late = things.store().put_if("r", b"late", Some(&seen_by_old_holder)).await;
    assert_eq!(late, Ok(false), "the version that the old holder saw is gone");
    let rewritten = things.update(&fence, &grant("r", 7).write(), |_| b"same".to_vec()).await;
    assert_eq!(word(&rewritten), "admitted");
    assert_eq!(word(&things.update(&fence, &grant("r", 5).write(), |_| b"late".to_vec()).await), "stale");
}

#[tokio::test]
async fn content_tags_keep_the_contract() {
    suite(&CasLines(CasFence::new(Yielding(ContentTags::default())))).await;
}

/// Requests over plain HTTP, without a client of TLS.
#[derive(Debug, Clone, Copy)]
struct Plain;

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Self))
    }
}

#[async_trait::async_trait]
impl HttpService for Plain {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            HttpError::new_boxed(HttpErrorKind::Unknown, error)
        };
        let (parts, body) = request.into_parts();
        let body = http_body_util::Full::new(body.collect().await?.to_bytes());
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
        let sent = client.build_http().request(http::Request::from_parts(parts, body)).await;
        let (parts, body) = sent.map_err(|error| failed(error.into()))?.into_parts();
        let body = body.collect().await.map_err(|error| failed(error.into()))?.to_bytes();
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

/// The client as the guide sets it up, in a fresh bucket.
async fn bucket(url: &str) -> Objects {
    let make = http::Request::put(format!("{url}/things")).body(Vec::new().into()).unwrap();
    assert_eq!(Plain.call(make).await.unwrap().status(), 200);
    let s3 = AmazonS3Builder::new()
        .with_bucket_name("things")
        .with_endpoint(url)
        .with_region("us-east-1")
        .with_allow_http(true)
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
        .with_http_connector(Plain);
    Objects::new(Arc::new(s3.build().unwrap()), "fenced".into())
}

/// One after another alone: moto does not promise that a conditional put is atomic.
#[tokio::test]
async fn requests_of_s3_keep_the_contract() {
    let server = leasehold_testbed::moto();
    let lines = CasLines(CasFence::new(bucket(server.url()).await));
    cases(&lines).await;
    agreement(&lines, seed()).await;
}
