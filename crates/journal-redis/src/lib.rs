//! The journal on Redis: one script commits a batch. For efficiency locks only.
//!
//! [`RedisJournal`] keeps the contract of [`leasehold_journal`] as long as one Redis keeps its memory. Redis acknowledges
//! before its replicas have a write, so its fail-over can lose what was acknowledged: the class is always
//! [`Durability::Lossy`], and correctness locks are refused on it. [`RedisConfig`] says where the engine is; several
//! clusters share one Redis by name.
//!
//! What fences: one script compares the field `epoch` with the writer's own epoch and nonce, and the field `tail` with the
//! slot before, and writes only then. Redis runs one script at a time.
//!
//! What it does: notices a Redis that went back. Every call looks at the tail; one that is not ours under our own epoch is
//! [`leasehold_journal::Outcome::Regressed`]. What it does not do: Sentinel, Redis Cluster's redirections, several masters.

mod claim;
mod client;
mod config;
mod fill;
mod keys;
mod reader;
mod settings;
mod snapshots;
mod txn;
mod writer;

pub use config::{InvalidConfig, RedisConfig};

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_journal::remote::{RemoteSnapshots, find_damage};
use leasehold_journal::{Claim, ImportError, Journal, OpenError, Opened, Reader, Tail};
use leasehold_types::Durability;

use client::Connector;
use keys::Keys;
use reader::RedisReader;
use snapshots::RedisSnapshots;
use writer::RedisWriter;

/// Redis acknowledges before its replicas, or its own disk, have a write.
const DURABILITY: Durability = Durability::Lossy;

/// A journal on Redis. Any number of nodes may open it, each fencing those before.
#[derive(Clone)]
pub struct RedisJournal {
    connector: Connector,
}

impl RedisJournal {
    /// Connects to nothing yet.
    pub fn new(config: RedisConfig) -> Self {
        let keys = Keys::new(config.name());
        Self { connector: Connector { config: Arc::new(config), keys } }
    }
}

impl std::fmt::Debug for RedisJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connector.config.fmt(f)
    }
}

#[async_trait]
impl Journal for RedisJournal {
    fn kind(&self) -> &'static str {
        "redis"
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
        settings::check(&client).await?;
        claim::probe(&client).await?;
        let claimed = claim::claim(&client, &wanted).await?;
        let mut reader = RedisReader::new(connector.clone());
        let damage = find_damage(&mut reader, claimed.tail, wanted.accept_loss).await?;
        if let Some(damage) = &damage {
            fill::cut(&client, &claimed, damage.whole).await?;
        }
        let tail = damage.as_ref().map_or(claimed.tail, |damage| damage.whole);
        let recovered = claimed.identity.recovered(damage.is_some());
        let holder = claimed.holder;
        Ok(Opened {
            cluster: claimed.identity.cluster,
            epoch: holder.epoch,
            tail,
            durability: DURABILITY,
            reader: Box::new(reader),
            writer: Box::new(RedisWriter::new(connector.clone(), holder, tail, client, recovered)),
            snapshots: Box::new(RemoteSnapshots::new(RedisSnapshots::new(connector.clone(), holder))),
            loss: damage.map(|damage| damage.lost),
        })
    }

    async fn durability(&self) -> Result<Durability, OpenError> {
        Ok(DURABILITY)
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        Ok(Box::new(RedisReader::new(self.connector.clone())))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        let client = self.connector.connect().await.map_err(claim::refuse)?;
        fill::fill(&client, from).await
    }
}
