//! Leasehold by its own Rust client.

use std::time::Duration;

use anyhow::bail;
use leasehold::{AcquireError, Client, LeaseGuard};

use super::{Connections, Locker, Wait};

/// Longer than any turn.
const WAIT: Duration = Duration::from_secs(60);

/// One task over a client that it may share with others.
pub(crate) struct LeaseholdLocker {
    client: Client,
}

impl LeaseholdLocker {
    /// So many clients: tasks that share one session and its stream, as those of one process do, or a session each.
    pub(crate) async fn connect(
        url: &str,
        connections: Connections,
        count: usize,
    ) -> anyhow::Result<Vec<Self>> {
        let first = client(url, 0).await?;
        let mut lockers = Vec::with_capacity(count);
        for number in 0..count {
            let client = match connections {
                Connections::One => first.clone(),
                Connections::OneEach => client(url, number + 1).await?,
            };
            lockers.push(Self { client });
        }
        Ok(lockers)
    }
}

async fn client(url: &str, number: usize) -> anyhow::Result<Client> {
    let client = Client::builder().endpoint(url).owner(format!("bench-{number}")).build()?;
    // The first acquire opens the session; that is no part of a figure.
    client.acquire(format!("warm-up/{number}")).await?.release().await?;
    Ok(client)
}

impl Locker for LeaseholdLocker {
    type Held = LeaseGuard;

    async fn acquire(&mut self, name: &str, wait: Wait) -> anyhow::Result<Option<LeaseGuard>> {
        let acquire = self.client.acquire(name);
        let acquire = if wait == Wait::Yes { acquire.wait(WAIT) } else { acquire.no_wait() };
        match acquire.await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::NotAcquired(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn release(&mut self, held: LeaseGuard) -> anyhow::Result<()> {
        Ok(held.release().await?)
    }

    async fn renew(&mut self, _: &LeaseGuard) -> anyhow::Result<()> {
        bail!("the client renews its session by itself; renewals are measured on the bare stream")
    }
}
