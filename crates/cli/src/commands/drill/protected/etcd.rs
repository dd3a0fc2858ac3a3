//! etcd: fenced writes by the library, what is outside of a fence by etcd's own JSON interface.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use leasehold_fence::etcd::{EtcdFence, Operation};
use leasehold_fence::{Fence, Grant};
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use super::exchange::{parted, send, words};
use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

pub(super) struct Etcd {
    fence: EtcdFence,
    thing: Fence,
    url: String,
    address: Address,
    prefix: String,
    fenced: bool,
}

impl Etcd {
    pub(super) async fn connect(url: &str, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(unusable(&address))?;
        let channel = endpoint.connect().await.map_err(|error| unusable(&address)(deepest(&error)))?;
        let prefix = format!("{}/", place.own_path());
        Ok(Self {
            fence: EtcdFence::new(channel, &format!("{prefix}fence/")),
            thing: place.fence(),
            url: url.trim_end_matches('/').to_owned(),
            address,
            prefix,
            fenced: place.fenced,
        })
    }

    fn key(&self) -> String {
        format!("{}value", self.prefix)
    }

    async fn call(&self, method: &str, body: Value) -> Result<Value, Failure> {
        let what = self.address.to_string();
        let request = Request::post(format!("{}/v3/kv/{method}", self.url));
        let request = request.body(Bytes::from(body.to_string())).map_err(unusable(&what))?;
        let (status, body) = parted(send(&what, request).await?);
        match status.is_success() {
            true => serde_json::from_slice(&body).map_err(unusable(&what)),
            false => Err(Failure::Fence(format!("{what}: {}", words(status, &body)))),
        }
    }
}

/// The driver's own words are only "transport error"; what it met stands at the bottom.
fn deepest(error: &tonic::transport::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

#[async_trait]
impl Protected for Etcd {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        if !self.fenced {
            self.call("put", json!({ "key": base64(&self.key()), "value": base64(text) })).await?;
            return Ok(Written::Accepted);
        }
        let put = Operation::put(self.key(), text);
        written(&self.address, self.fence.write(&self.thing, &grant.write(), vec![put]).await)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let answer = self.call("range", json!({ "key": base64(&self.key()) })).await?;
        let value = answer["kvs"][0]["value"].as_str().and_then(|value| STANDARD.decode(value).ok());
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        // From the prefix to the first key after all that begin with it: `/` is followed by `0`.
        let end = format!("{}0", self.prefix.trim_end_matches('/'));
        self.call("deleterange", json!({ "key": base64(&self.prefix), "range_end": base64(&end) })).await?;
        Ok(())
    }
}
