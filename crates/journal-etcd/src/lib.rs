//! The journal on etcd: one transaction commits a batch, and etcd's consensus does the rest.
//!
//! [`EtcdJournal`] keeps the whole contract of [`leasehold_journal`]. Its keys are below `/leasehold/NAME/`, so several
//! clusters share one etcd by name. [`EtcdConfig`] says where the members are. etcd 3.4 and later.
//!
//! What fences: every write is a transaction that compares the key `epoch` with the writer's own epoch and nonce. A claim
//! changes that key, and etcd orders the two.
//!
//! What it does not do: retry a call by itself, use etcd's leases or watches, balance over members. It talks to one
//! member at a time and turns to the next one after an unknown outcome.

mod claim;
mod client;
mod config;
mod fill;
mod grpc;
mod keys;
mod proto;
mod reader;
mod snapshots;
mod writer;

pub use config::{EtcdConfig, InvalidConfig};

use async_trait::async_trait;
use leasehold_journal::remote::{RemoteSnapshots, find_damage};
use leasehold_journal::{Claim, ImportError, Journal, OpenError, Opened, Reader, Tail};
use leasehold_types::Durability;

use client::{Client, Connector};
use keys::Keys;
use reader::EtcdReader;
use snapshots::EtcdSnapshots;
use writer::EtcdWriter;

/// A member syncs its log before it answers. That it was told not to cannot be seen from here.
const DURABILITY: Durability = Durability::Durable;

/// A journal on etcd. Any number of nodes may open it, each fencing those before.
#[derive(Clone)]
pub struct EtcdJournal {
    connector: Connector,
    keys: Keys,
}

impl EtcdJournal {
    /// Reads the certificates; connects to nothing yet.
    ///
    /// # Errors
    /// A certificate or an address is not usable; the operator's to mend.
    pub fn new(config: EtcdConfig) -> Result<Self, InvalidConfig> {
        let keys = Keys::new(config.name());
        Connector::new(config).map(|connector| Self { connector, keys })
    }

    async fn connect(&self) -> Result<Client, OpenError> {
        let connected = self.connector.connect().await;
        // A member that answers nothing must not be the first one of the next attempt too.
        connected.inspect_err(|_| self.connector.turn()).map_err(claim::refuse)
    }

    async fn try_open(&self, client: &Client, wanted: &Claim) -> Result<Opened, OpenError> {
        claim::check_engine(client, &self.keys).await?;
        claim::probe(client, &self.keys).await?;
        let claimed = claim::claim(client, &self.keys, wanted).await?;
        let mut reader = EtcdReader::new(self.connector.clone(), self.keys.clone());
        let damage = find_damage(&mut reader, claimed.tail, wanted.accept_loss).await?;
        if let Some(damage) = &damage {
            fill::cut(client, &self.keys, &claimed, damage.whole).await?;
        }
        let tail = damage.as_ref().map_or(claimed.tail, |damage| damage.whole);
        let recovered = claimed.identity.recovered(damage.is_some());
        let (connector, keys, holder) = (&self.connector, &self.keys, claimed.holder);
        Ok(Opened {
            cluster: claimed.identity.cluster,
            epoch: holder.epoch,
            tail,
            durability: DURABILITY,
            reader: Box::new(reader),
            writer: Box::new(EtcdWriter::new(
                connector.clone(),
                keys.clone(),
                holder,
                client.clone(),
                recovered,
            )),
            snapshots: Box::new(RemoteSnapshots::new(EtcdSnapshots::new(
                connector.clone(),
                keys.clone(),
                holder,
            ))),
            loss: damage.map(|damage| damage.lost),
        })
    }
}

impl std::fmt::Debug for EtcdJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connector.config.fmt(f)
    }
}

#[async_trait]
impl Journal for EtcdJournal {
    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn place(&self) -> String {
        self.connector.config.place()
    }

    async fn reach(&self) -> Result<(), OpenError> {
        self.connect().await.map(drop)
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let client = self.connect().await?;
        let opened = self.try_open(&client, &claim).await;
        if matches!(opened, Err(OpenError::Unavailable(_))) {
            self.connector.turn();
        }
        opened
    }

    async fn durability(&self) -> Result<Durability, OpenError> {
        Ok(DURABILITY)
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        Ok(Box::new(EtcdReader::new(self.connector.clone(), self.keys.clone())))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        let client = self.connect().await?;
        fill::fill(&client, &self.keys, from).await
    }
}
