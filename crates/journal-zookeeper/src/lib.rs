//! The journal on ZooKeeper: one multi commits a batch, and ZooKeeper's consensus does the rest.
//!
//! [`ZookeeperJournal`] keeps the whole contract of [`leasehold_journal`]. Its nodes are below `/leasehold/NAME`, so several
//! clusters share one ZooKeeper by name. [`ZookeeperConfig`] says where the servers are. ZooKeeper 3.6 and later.
//!
//! What fences: every write is a multi that checks a node named by the writer's nonce. A claim removes that node and makes
//! its own, and ZooKeeper orders the two. The tail is compared by the version of its node.
//!
//! What it does not do: use ephemeral or sequential nodes, watch. A lost connection is an unknown outcome; the next attempt
//! is made in a new session.

mod claim;
mod client;
mod config;
mod fill;
mod paths;
mod reader;
mod snapshots;
mod tunnel;
mod writer;

pub use config::{InvalidConfig, ZookeeperConfig};

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_journal::remote::{RemoteSnapshots, find_damage};
use leasehold_journal::{Claim, ImportError, Journal, OpenError, Opened, Reader, Tail};
use leasehold_types::Durability;

use client::Connector;
use paths::Paths;
use reader::ZookeeperReader;
use snapshots::ZookeeperSnapshots;
use writer::ZookeeperWriter;

/// A server syncs its log before it answers. That it was told not to (forceSync) cannot be seen from here.
const DURABILITY: Durability = Durability::Durable;

/// A journal on ZooKeeper. Any number of nodes may open it, each fencing those before.
#[derive(Clone)]
pub struct ZookeeperJournal {
    connector: Connector,
}

impl ZookeeperJournal {
    /// Connects to nothing yet.
    pub fn new(config: ZookeeperConfig) -> Self {
        let paths = Paths::new(config.name());
        Self { connector: Connector { config: Arc::new(config), paths } }
    }
}

impl std::fmt::Debug for ZookeeperJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connector.config.fmt(f)
    }
}

#[async_trait]
impl Journal for ZookeeperJournal {
    fn kind(&self) -> &'static str {
        "zookeeper"
    }

    fn place(&self) -> String {
        self.connector.config.place()
    }

    async fn reach(&self) -> Result<(), OpenError> {
        self.connector.connect().await.map(drop).map_err(claim::refuse)
    }

    async fn open(&self, wanted: Claim) -> Result<Opened, OpenError> {
        let connector = &self.connector;
        let client = connector.connect().await.map_err(claim::refuse)?;
        claim::probe(&client).await?;
        let claimed = claim::claim(&client, &connector.paths, &wanted).await?;
        let mut reader = ZookeeperReader::new(connector.clone());
        let damage = find_damage(&mut reader, claimed.place.tail, wanted.accept_loss).await?;
        let place = match &damage {
            Some(damage) => fill::cut(&client, &connector.paths, &claimed, damage.whole).await?,
            None => claimed.place,
        };
        let recovered = claimed.identity.recovered(damage.is_some());
        let holder = claimed.holder;
        Ok(Opened {
            cluster: claimed.identity.cluster,
            epoch: holder.epoch,
            tail: place.tail,
            durability: DURABILITY,
            reader: Box::new(reader),
            writer: Box::new(ZookeeperWriter::new(connector.clone(), holder, place, client, recovered)),
            snapshots: Box::new(RemoteSnapshots::new(ZookeeperSnapshots::new(connector.clone(), holder))),
            loss: damage.map(|damage| damage.lost),
        })
    }

    async fn durability(&self) -> Result<Durability, OpenError> {
        Ok(DURABILITY)
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        Ok(Box::new(ZookeeperReader::new(self.connector.clone())))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        let client = self.connector.connect().await.map_err(claim::refuse)?;
        fill::fill(&client, &self.connector.paths, from).await
    }
}
