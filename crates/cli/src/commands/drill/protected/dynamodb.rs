//! DynamoDB.

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use leasehold_fence::dynamodb::{DynamoFence, Items, KEY};
use leasehold_fence::{Fence, Grant};

use super::address::Cloud;
use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

/// Where a write without a fence puts its text.
const TEXT: &str = "drill";

pub(super) struct Item {
    client: Client,
    table: String,
    fence: DynamoFence,
    thing: Fence,
    address: Address,
    fenced: bool,
}

impl Item {
    /// Credentials come from the environment, as every program for AWS takes them.
    pub(super) fn new(cloud: &Cloud, place: &Place) -> Result<Self, Failure> {
        let client = client(cloud)?;
        Ok(Self {
            fence: DynamoFence::new(Items::new(client.clone(), &cloud.name)),
            client,
            table: cloud.name.clone(),
            thing: place.fence(),
            address: place.address.clone(),
            fenced: place.fenced,
        })
    }

    fn key(&self) -> AttributeValue {
        AttributeValue::S(self.thing.name().to_string())
    }
}

fn client(cloud: &Cloud) -> Result<Client, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let needed = |name: &str| variable(name).ok_or_else(|| Failure::Usage(format!("{name} is not set")));
    let (id, secret) = (needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?);
    let credentials = Credentials::new(id, secret, variable("AWS_SESSION_TOKEN"), None, "environment");
    let region =
        cloud.region.clone().or_else(|| variable("AWS_REGION")).unwrap_or_else(|| "us-east-1".into());
    let mut config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(credentials)
        .region(Region::new(region))
        // A held write must stay the one write it is.
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    if let Some(endpoint) = &cloud.endpoint {
        config = config.endpoint_url(endpoint);
    }
    let plain = cloud.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let config = match plain {
        true => config.http_client(Builder::new().build_http()),
        false => {
            config.http_client(Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https())
        }
    };
    Ok(Client::from_conf(config.build()))
}

#[async_trait]
impl Protected for Item {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        if self.fenced {
            let outcome = self.fence.update(&self.thing, &grant.write(), |_| text.as_bytes().to_vec()).await;
            return written(&self.address, outcome);
        }
        let put = self.client.put_item().table_name(&self.table).item(KEY, self.key());
        let put = put.item(TEXT, AttributeValue::S(text.to_owned())).send().await;
        put.map_err(|error| unusable(&self.address)(DisplayErrorContext(error)))?;
        Ok(Written::Accepted)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        if self.fenced {
            let value = self.fence.value(&self.thing).await.map_err(unusable(&self.address))?;
            return Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        }
        let get = self.client.get_item().table_name(&self.table).consistent_read(true);
        let found = get.key(KEY, self.key()).send().await;
        let found = found.map_err(|error| unusable(&self.address)(DisplayErrorContext(error)))?;
        Ok(found.item().and_then(|item| item.get(TEXT)?.as_s().ok().cloned()))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        let gone = self.client.delete_item().table_name(&self.table).key(KEY, self.key()).send().await;
        gone.map_err(|error| unusable(&self.address)(DisplayErrorContext(error)))?;
        Ok(())
    }
}
