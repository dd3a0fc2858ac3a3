//! Redis.

use std::time::Duration;

use async_trait::async_trait;
use leasehold_fence::redis::{Change, RedisFence};
use leasehold_fence::{Fence, Grant};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

/// A held write is answered late; the driver would give up after half a second.
const ANSWER: Duration = Duration::from_secs(600);

pub(super) struct Redis {
    connection: MultiplexedConnection,
    fence: RedisFence,
    address: Address,
    thing: Fence,
    fenced: bool,
}

impl Redis {
    pub(super) async fn connect(url: &str, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let client = redis::Client::open(url).map_err(unusable(&address))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER));
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        Ok(Self {
            connection: connection.map_err(unusable(&address))?,
            fence: RedisFence::new(&format!("{}/", place.own_path())),
            address,
            thing: place.fence(),
            fenced: place.fenced,
        })
    }
}

#[async_trait]
impl Protected for Redis {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        if !self.fenced {
            let mut put = redis::cmd("HSET");
            put.arg(self.fence.key(&self.thing)).arg("value").arg(text);
            put.query_async::<()>(&mut self.connection).await.map_err(unusable(&self.address))?;
            return Ok(Written::Accepted);
        }
        let change = Change::Put(text.as_bytes());
        let outcome = self.fence.write(&mut self.connection, &self.thing, &grant.write(), change).await;
        written(&self.address, outcome)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let value =
            self.fence.value(&mut self.connection, &self.thing).await.map_err(unusable(&self.address))?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        let key = self.fence.key(&self.thing);
        let gone = redis::cmd("DEL").arg(key).query_async::<()>(&mut self.connection).await;
        gone.map_err(unusable(&self.address))
    }
}
