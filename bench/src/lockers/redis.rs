//! Redis: the script that most libraries have, with or without a fencing token.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Script, cmd};

use super::{Connections, Locker, Wait};

const TTL_MS: u64 = 60_000;
/// A lock in Redis has no queue: whoever waits asks again.
const POLL: Duration = Duration::from_millis(1);

/// Takes the lock if it is free, and counts a token with it.
const ACQUIRE: &str = "if redis.call('exists', KEYS[1]) == 1 then return 0 end \
    local token = redis.call('incr', KEYS[2]) \
    redis.call('set', KEYS[1], ARGV[1] .. ':' .. token, 'PX', ARGV[2]) return token";
/// Deletes the lock if it is still ours.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
/// Extends the lock if it is still ours.
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
    return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// Which of the two recipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recipe {
    /// A script with a token.
    Token,
    /// `SET NX PX`, no token.
    Plain,
}

/// One client.
pub(crate) struct RedisLocker {
    connection: MultiplexedConnection,
    recipe: Recipe,
    owner: String,
    acquire: Script,
    release: Script,
    renew: Script,
}

/// A key and the value that says that it is ours.
pub(crate) struct Held {
    key: String,
    value: String,
}

impl RedisLocker {
    /// So many clients; over one connection their calls are pipelined by the library.
    pub(crate) async fn connect(
        url: &str,
        recipe: Recipe,
        connections: Connections,
        count: usize,
    ) -> anyhow::Result<Vec<Self>> {
        let client = Client::open(url)?;
        let first = client.get_multiplexed_async_connection().await?;
        let mut lockers = Vec::with_capacity(count);
        for number in 0..count {
            let connection = match connections {
                Connections::One => first.clone(),
                Connections::OneEach => client.get_multiplexed_async_connection().await?,
            };
            lockers.push(Self {
                connection,
                recipe,
                owner: format!("bench-{number}"),
                acquire: Script::new(ACQUIRE),
                release: Script::new(RELEASE),
                renew: Script::new(RENEW),
            });
        }
        Ok(lockers)
    }

    async fn try_acquire(&mut self, key: &str) -> anyhow::Result<Option<Held>> {
        let value = match self.recipe {
            Recipe::Token => {
                let mut call = self.acquire.key(key);
                let call = call.key("bench:token").arg(&self.owner).arg(TTL_MS);
                let token: u64 = call.invoke_async(&mut self.connection).await?;
                (token > 0).then(|| format!("{}:{token}", self.owner))
            }
            Recipe::Plain => {
                let mut set = cmd("SET");
                set.arg(key).arg(&self.owner).arg("NX").arg("PX").arg(TTL_MS);
                let set: Option<String> = set.query_async(&mut self.connection).await?;
                set.map(|_| self.owner.clone())
            }
        };
        Ok(value.map(|value| Held { key: key.to_owned(), value }))
    }
}

impl Locker for RedisLocker {
    type Held = Held;

    async fn acquire(&mut self, name: &str, wait: Wait) -> anyhow::Result<Option<Held>> {
        loop {
            let held = self.try_acquire(name).await?;
            if held.is_some() || wait == Wait::No {
                return Ok(held);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn release(&mut self, held: Held) -> anyhow::Result<()> {
        let mut call = self.release.key(&held.key);
        let deleted: u64 = call.arg(&held.value).invoke_async(&mut self.connection).await?;
        anyhow::ensure!(deleted == 1, "the lock was not ours any more");
        Ok(())
    }

    async fn renew(&mut self, held: &Held) -> anyhow::Result<()> {
        let mut call = self.renew.key(&held.key);
        let call = call.arg(&held.value).arg(TTL_MS);
        let extended: u64 = call.invoke_async(&mut self.connection).await?;
        anyhow::ensure!(extended == 1, "the lock was not ours any more");
        Ok(())
    }
}
