//! One client of a lock, whoever keeps it. Each file is one recipe, written as its engine's own documentation or
//! client library would have it.

mod etcd;
mod leasehold;
mod postgres;
mod redis;
mod stream;
mod zookeeper;

pub(crate) use etcd::EtcdLocker;
pub(crate) use leasehold::LeaseholdLocker;
pub(crate) use postgres::{PostgresLocker, connect as connect_postgres, prepare as prepare_postgres};
pub(crate) use redis::{Recipe as RedisRecipe, RedisLocker};
pub(crate) use stream::StreamLocker;
pub(crate) use zookeeper::ZookeeperLocker;

/// Whether an acquire stays until it gets the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// It is answered at once.
    No,
    /// It waits for its turn, or polls where the engine has no turns.
    Yes,
}

/// How clients of one process reach a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Connections {
    /// All over one, with many calls in flight.
    One,
    /// Each over its own, with one call in flight.
    OneEach,
}

/// One client.
pub(crate) trait Locker: Send + Sized + 'static {
    /// What it has while it holds a lock.
    type Held: Send + Sync;

    /// Takes a lock; `None` if somebody else has it.
    fn acquire(
        &mut self,
        name: &str,
        wait: Wait,
    ) -> impl Future<Output = anyhow::Result<Option<Self::Held>>> + Send;

    /// Gives it back.
    fn release(&mut self, held: Self::Held) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Keeps it.
    fn renew(&mut self, held: &Self::Held) -> impl Future<Output = anyhow::Result<()>> + Send;
}
