//! The reference storage service, `leasehold fence storage`.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use leasehold_fence::Grant;
use serde_json::{Value, json};

use super::exchange::{parted, send, words};
use super::{Place, Protected, Written, unusable};
use crate::client::encoded;
use crate::failure::Failure;

pub(super) struct Storage {
    url: String,
    what: String,
    path: String,
    fenced: bool,
}

impl Storage {
    pub(super) fn new(url: &str, place: &Place) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            what: place.address.to_string(),
            path: place.own_path(),
            fenced: place.fenced,
        }
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), Failure> {
        let request = Request::get(format!("{}/v1/{path}", self.url)).body(Bytes::new());
        send(&self.what, request.map_err(unusable(&self.what))?).await.map(parted)
    }

    /// The token to present. Nobody gets past this fence, so that a worker without one presents the newest token that
    /// anybody has used, as a program does that takes it for a formality.
    async fn token(&self, grant: &Grant) -> Result<u64, Failure> {
        if self.fenced {
            return Ok(grant.token().get());
        }
        let (_, body) = self.get(&format!("resources/{}", encoded(grant.resource().as_str()))).await?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(answer["highestToken"].as_u64().unwrap_or(0).max(grant.token().get()))
    }
}

#[async_trait]
impl Protected for Storage {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        let payload = json!({ "filePath": self.path, "mutationType": "PUT", "bytes": STANDARD.encode(text) });
        let (resource, token) = (grant.resource().as_str(), self.token(grant).await?);
        let body = json!({ "resourceId": resource, "fencingToken": token, "writePayload": payload });
        let request =
            Request::post(format!("{}/v1/writes", self.url)).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Bytes::from(body.to_string())).map_err(unusable(&self.what))?;
        let (status, body) = parted(send(&self.what, request).await?);
        match status {
            status if status.is_success() => Ok(Written::Accepted),
            StatusCode::CONFLICT => Ok(Written::Refused(words(status, &body))),
            status => Err(Failure::Fence(format!("{}: {}", self.what, words(status, &body)))),
        }
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let (status, body) = self.get(&format!("files/{}", self.path)).await?;
        Ok(status.is_success().then(|| String::from_utf8_lossy(&body).into_owned()))
    }

    /// The storage has no way to remove a file: a small one stays, under `leasehold-drill/`.
    async fn remove(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
