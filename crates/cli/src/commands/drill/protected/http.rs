//! A service over HTTP, behind a fence: `leasehold fence proxy`, or a layer of its own.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use leasehold_fence::Grant;
use leasehold_fence::http::{RESOURCE_HEADER, TOKEN_HEADER};

use super::exchange::{parted, send, words};
use super::{Place, Protected, Written, unusable};
use crate::failure::Failure;

pub(super) struct Http {
    url: String,
    what: String,
    fenced: bool,
}

impl Http {
    pub(super) fn new(url: &str, place: &Place) -> Self {
        Self { url: url.to_owned(), what: place.address.to_string(), fenced: place.fenced }
    }
}

#[async_trait]
impl Protected for Http {
    /// The service makes what is written to it.
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        let mut request = Request::builder().method(Method::PUT).uri(&self.url);
        if self.fenced {
            request = request.header(TOKEN_HEADER, grant.token().get());
            request = request.header(RESOURCE_HEADER, grant.resource().as_str());
        }
        let request = request.body(Bytes::from(text.to_owned())).map_err(unusable(&self.what))?;
        let (status, body) = parted(send(&self.what, request).await?);
        match status {
            status if status.is_success() => Ok(Written::Accepted),
            StatusCode::CONFLICT | StatusCode::PRECONDITION_REQUIRED => {
                Ok(Written::Refused(words(status, &body)))
            }
            status => Err(Failure::Fence(format!("{}: {}", self.what, words(status, &body)))),
        }
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let request = Request::get(&self.url).body(Bytes::new()).map_err(unusable(&self.what))?;
        let (status, body) = parted(send(&self.what, request).await?);
        // A service that shows nothing is judged by its answers alone.
        Ok(status.is_success().then(|| String::from_utf8_lossy(&body).into_owned()))
    }

    /// What was written stays: the address is the user's own.
    async fn remove(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
