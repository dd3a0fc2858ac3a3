//! Connections to the engine, each given up after any failure.

use std::sync::Arc;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use crate::config::RedisConfig;
use crate::keys::Keys;
use crate::txn::{Answer, Txn};

/// Nobody knows whether it was done. Redis has no failure of a script that is worth telling from this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) String);

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The only place where the driver's errors are judged.
fn judge(error: &redis::RedisError) -> Trouble {
    Trouble(error.to_string())
}

/// Makes clients.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) config: Arc<RedisConfig>,
    pub(crate) keys: Keys,
}

impl Connector {
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let within = self.config.call_within;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(Some(within));
        let connecting = self.config.client.get_multiplexed_async_connection_with_config(&config);
        let connection = connecting.await.map_err(|error| judge(&error))?;
        Ok(Client { connection, keys: self.keys.clone() })
    }
}

/// One connection. The driver neither reconnects nor repeats a call on it.
#[derive(Clone)]
pub(crate) struct Client {
    connection: MultiplexedConnection,
    pub(crate) keys: Keys,
}

impl Client {
    /// The same connection for other keys.
    pub(crate) fn with_keys(&self, keys: Keys) -> Self {
        Self { connection: self.connection.clone(), keys }
    }

    pub(crate) async fn run(&self, txn: &Txn) -> Result<Answer, Trouble> {
        let mut connection = self.connection.clone();
        let answer = txn.run(&mut connection, &self.keys).await.map_err(|error| judge(&error))?;
        answer.ok_or_else(|| Trouble("the engine answered another question".to_owned()))
    }

    /// Any other command.
    pub(crate) async fn command<T: redis::FromRedisValue>(
        &self,
        name: &str,
        args: &[&str],
    ) -> Result<T, Trouble> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd(name);
        command.arg(args);
        command.query_async(&mut connection).await.map_err(|error| judge(&error))
    }
}
