//! ZooKeeper: the recipe of its documentation, an ephemeral sequential node for each client that wants the lock. The
//! node's number is the token.

use anyhow::Context as _;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::{Locker, Wait};

const ROOT: &str = "/bench";

/// One session.
pub(crate) struct ZookeeperLocker {
    client: Client,
    /// Names whose parent node this client knows to be there.
    known: std::collections::HashSet<String>,
}

/// The path of our node.
pub(crate) struct Held(String);

impl ZookeeperLocker {
    /// Clients with a session each.
    pub(crate) async fn connect(hosts: &str, count: usize) -> anyhow::Result<Vec<Self>> {
        let mut lockers = Vec::with_capacity(count);
        for _ in 0..count {
            let client = Client::connector().connect(hosts).await?;
            ensure(&client, ROOT).await?;
            lockers.push(Self { client, known: Default::default() });
        }
        Ok(lockers)
    }

    async fn parent(&mut self, name: &str) -> anyhow::Result<String> {
        let parent = format!("{ROOT}/{}", name.replace('/', "_"));
        if !self.known.contains(&parent) {
            ensure(&self.client, &parent).await?;
            self.known.insert(parent.clone());
        }
        Ok(parent)
    }

    /// Waits until the node right before ours is gone.
    async fn wait_for(&self, path: &str) -> anyhow::Result<()> {
        let (stat, watcher) = self.client.check_and_watch_stat(path).await?;
        if stat.is_some() {
            watcher.changed().await;
        }
        Ok(())
    }
}

async fn ensure(client: &Client, path: &str) -> anyhow::Result<()> {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match client.create(path, &[], &options).await {
        Ok(_) | Err(Error::NodeExists) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Locker for ZookeeperLocker {
    type Held = Held;

    async fn acquire(&mut self, name: &str, wait: Wait) -> anyhow::Result<Option<Held>> {
        let parent = self.parent(name).await?;
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, number) = self.client.create(&format!("{parent}/n-"), &[], &options).await?;
        let own = format!("n-{number}");
        let path = format!("{parent}/{own}");
        loop {
            let mut children = self.client.list_children(&parent).await?;
            children.sort_unstable();
            let place = children.iter().position(|child| *child == own).context("our node is there")?;
            if place == 0 {
                return Ok(Some(Held(path)));
            }
            if wait == Wait::No {
                self.client.delete(&path, None).await?;
                return Ok(None);
            }
            self.wait_for(&format!("{parent}/{}", children[place - 1])).await?;
        }
    }

    async fn release(&mut self, held: Held) -> anyhow::Result<()> {
        Ok(self.client.delete(&held.0, None).await?)
    }

    async fn renew(&mut self, _: &Held) -> anyhow::Result<()> {
        anyhow::bail!("a session is renewed by its connection alone")
    }
}
