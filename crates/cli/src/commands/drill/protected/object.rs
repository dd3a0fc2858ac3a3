//! S3, or whatever speaks like it.

use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use leasehold_fence::object::{ObjectFence, Objects};
use leasehold_fence::{Fence, Grant};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};

use super::address::Cloud;
use super::exchange::send;
use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

pub(super) struct Object {
    store: Arc<dyn ObjectStore>,
    fence: ObjectFence,
    thing: Fence,
    path: Path,
    address: Address,
    fenced: bool,
}

impl Object {
    /// Credentials come from the environment, as every program for S3 takes them.
    pub(super) fn new(cloud: &Cloud, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&cloud.name)
            .with_allow_http(true)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // What the outcome was is resolved by the fence.
            .with_retry(retry)
            .with_http_connector(Connector);
        if let Some(endpoint) = &cloud.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &cloud.region {
            builder = builder.with_region(region);
        }
        let store: Arc<dyn ObjectStore> = Arc::new(builder.build().map_err(unusable(&address))?);
        let objects = Objects::new(store.clone(), Path::from(place.own_path()));
        let path = objects.path(place.resource.as_str());
        Ok(Self {
            store,
            fence: ObjectFence::new(objects),
            thing: place.fence(),
            path,
            address,
            fenced: place.fenced,
        })
    }
}

#[async_trait]
impl Protected for Object {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        if !self.fenced {
            let put = self.store.put(&self.path, PutPayload::from(text.to_owned())).await;
            return put.map(|_| Written::Accepted).map_err(unusable(&self.address));
        }
        let outcome = self.fence.update(&self.thing, &grant.write(), |_| text.as_bytes().to_vec()).await;
        written(&self.address, outcome)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let bytes = if self.fenced {
            self.fence.value(&self.thing).await.map_err(unusable(&self.address))?
        } else {
            let found = self.store.get(&self.path).await.map_err(unusable(&self.address))?;
            Some(found.bytes().await.map_err(unusable(&self.address))?.to_vec())
        };
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        match self.store.delete(&self.path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unusable(&self.address)(error)),
        }
    }
}

/// Sends the requests of the driver the way the drill sends its own: a connection each.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Self))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |failure: Failure| HttpError::new(HttpErrorKind::Unknown, failure);
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let response = send("S3", http::Request::from_parts(parts, body)).await.map_err(failed)?;
        Ok(response.map(Into::into))
    }
}
