//! Connections to the engine, each given up after any failure.

use std::sync::Arc;

use leasehold_journal::remote::is_of_certificates;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError};

use crate::config::RedisConfig;
use crate::keys::Keys;
use crate::txn::{Answer, Txn};

/// Why a call did not give its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// This user may not, or is not let in, or there is no such database; or one end does not trust the other's certificate.
    NotAllowed(String),
    /// Nobody knows whether it was done.
    Unknown(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::NotAllowed(text) | Self::Unknown(text)) = self;
        f.write_str(text)
    }
}

/// The only place where the driver's errors are judged.
fn judge(error: &RedisError) -> Trouble {
    let text = error.to_string();
    let is_refused = is_refusal(error.code().unwrap_or_default(), &text) || is_of_certificates(&text);
    if is_refused { Trouble::NotAllowed(text) } else { Trouble::Unknown(text) }
}

/// Whether Redis does not let this user do it, or in at all. By the words where a script, or the driver, hides the code. One that
/// loads its file or has no connection to spare refuses too, but will not for long: those are unknown.
fn is_refusal(code: &str, text: &str) -> bool {
    let words = [
        "no permissions",
        "Authentication required",
        "without any password configured",
        "DB index is out of range",
        "ACL failure in script",
        "The user executing the script can't",
    ];
    ["WRONGPASS", "NOAUTH", "NOPERM"].contains(&code) || words.iter().any(|words| text.contains(words))
}

/// Makes clients.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) config: Arc<RedisConfig>,
    pub(crate) keys: Keys,
}

impl Connector {
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        match self.connected(&self.config.client).await {
            Ok(connection) => Ok(Client { connection, keys: self.keys.clone() }),
            Err(error) => Err(self.cause(&error).await),
        }
    }

    async fn connected(&self, client: &redis::Client) -> Result<MultiplexedConnection, RedisError> {
        let within = self.config.call_within;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(Some(within));
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Why there is no connection. The driver says the same of a wrong password and of a Redis that has no connection to spare,
    /// so the engine is asked once more, and its own words are kept.
    async fn cause(&self, error: &RedisError) -> Trouble {
        if error.kind() != ErrorKind::AuthenticationFailed {
            return judge(error);
        }
        match self.authenticate().await {
            Ok(()) => Trouble::Unknown("the engine let us in at the second attempt only".to_owned()),
            Err(error) => judge(&error),
        }
    }

    /// Authenticates on a connection that does nothing else.
    async fn authenticate(&self) -> Result<(), RedisError> {
        let info = self.config.client.get_connection_info();
        let bare = RedisConnectionInfo::default().set_skip_set_lib_name();
        let client = redis::Client::open(info.clone().set_redis_settings(bare))?;
        let (user, mut command) = (info.redis_settings(), redis::cmd("AUTH"));
        command.arg(user.username()).arg(user.password());
        command.query_async(&mut self.connected(&client).await?).await
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
        answer.ok_or_else(|| Trouble::Unknown("the engine answered another question".to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_no_refusal() {
        assert!(is_refusal("WRONGPASS", "invalid username-password pair or user is disabled."));
        assert!(is_refusal(
            "ERR",
            "ACL failure in script: User node has no permissions to run the 'hset' command"
        ));
        assert!(is_refusal(
            "ERR",
            "The user executing the script can't run this command or subcommand script"
        ));
        assert!(is_refusal("ERR", "Redis server refused to switch database: DB index is out of range"));
        for text in ["max number of clients reached", "Redis is loading the dataset in memory", "broken pipe"]
        {
            assert!(!is_refusal("ERR", text), "{text}");
        }
    }
}
