//! The journal on PostgreSQL: one autocommit statement commits a batch, and PostgreSQL does the rest.
//!
//! [`PostgresJournal`] keeps the whole contract of [`leasehold_journal`]. Its tables are made by itself, in a schema
//! `leasehold`; several clusters share them by name. [`PostgresConfig`] says where the engine is.
//!
//! What fences: an append updates the cluster's row in `head`, comparing epoch, nonce, tail and hash. A claim updates the
//! same row. PostgreSQL orders the two by the row lock, and the one that comes second looks at the row again.
//!
//! What it does not do: pool connections, open transactions, cancel statements, fail over. It uses one connection to
//! write, one to read, and a third while a snapshot is stored; with several hosts in the URL it takes the one that
//! accepts writes, and tries one that gave no answer in time last. A connection pooler in between must pool by session.

mod claim;
mod config;
mod connection;
mod fill;
mod mend;
mod reader;
mod row;
mod settings;
mod snapshots;
mod sql;
mod tls;
mod writer;

pub use config::{InvalidConfig, PostgresConfig};

use async_trait::async_trait;
use leasehold_journal::remote::{RemoteSnapshots, find_damage};
use leasehold_journal::{Claim, ImportError, Journal, OpenError, Opened, Reader, Tail};
use leasehold_types::Durability;

use connection::Connector;
use reader::PostgresReader;
use settings::Settings;
use snapshots::PostgresSnapshots;
use writer::{PostgresWriter, WriteLink};

/// A journal on PostgreSQL. Any number of nodes may open it, each fencing those before.
#[derive(Clone)]
pub struct PostgresJournal {
    connector: Connector,
}

impl PostgresJournal {
    /// Reads the certificates; connects to nothing yet.
    ///
    /// # Errors
    /// A certificate cannot be read; the operator's to mend.
    pub fn new(config: PostgresConfig) -> Result<Self, InvalidConfig> {
        Connector::new(config).map(|connector| Self { connector })
    }
}

impl std::fmt::Debug for PostgresJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connector.config.fmt(f)
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn place(&self) -> String {
        self.connector.config.place()
    }

    async fn reach(&self) -> Result<(), OpenError> {
        self.connector.connect().await.map(drop).map_err(claim::refuse)
    }

    async fn open(&self, wanted: Claim) -> Result<Opened, OpenError> {
        let connector = &self.connector;
        let connection = connector.connect().await.map_err(claim::refuse)?;
        claim::create_schema(&connection).await.map_err(claim::refuse)?;
        let settings = Settings::read(&connection).await.map_err(claim::refuse)?;
        if let Some(weakness) = settings.weakness() {
            tracing::warn!(weakness, "acknowledged grants can be lost");
        }
        let link = WriteLink::over(connector.connect().await.map_err(claim::refuse)?)
            .await
            .map_err(claim::refuse)?;
        if !connection.is_of_present_turn() {
            return Err(OpenError::Unavailable("the engine gave no answer in time elsewhere".to_owned()));
        }
        claim::probe(&connection, &link).await?;
        let claimed = claim::claim(connector, &connection, &wanted).await?;
        let mut reader = PostgresReader::new(connector.clone());
        let damage = find_damage(&mut reader, claimed.tail, wanted.accept_loss).await?;
        if let Some(damage) = &damage {
            mend::cut(&connection, connector.name(), &claimed, damage.whole).await?;
        }
        let tail = damage.as_ref().map_or(claimed.tail, |damage| damage.whole);
        Ok(Opened {
            cluster: claimed.cluster,
            epoch: claimed.holder.epoch,
            tail,
            durability: settings.durability(),
            reader: Box::new(reader),
            writer: Box::new(PostgresWriter::new(connector.clone(), &claimed, tail, link)),
            snapshots: Box::new(RemoteSnapshots::new(PostgresSnapshots::new(
                connector.clone(),
                claimed.holder,
            ))),
            loss: damage.map(|damage| damage.lost),
        })
    }

    async fn durability(&self) -> Result<Durability, OpenError> {
        let connection = self.connector.connect().await.map_err(claim::refuse)?;
        let settings = Settings::read(&connection).await.map_err(claim::refuse)?;
        Ok(settings.durability())
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        Ok(Box::new(PostgresReader::new(self.connector.clone())))
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        fill::fill(&self.connector, from).await
    }
}
