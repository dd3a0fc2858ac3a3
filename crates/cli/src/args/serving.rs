//! Servers.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OperatorArgs;
use crate::number;

/// Flags come before the environment (`LEASEHOLD_LISTEN` …), which comes before the file.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Data directory [default: ./leasehold-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Where the state lives [default: embedded, in the data directory]
    #[arg(long, value_name = "URL")]
    pub(crate) journal: Option<String>,
    /// Name of the cluster on a shared engine [default: main]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// URL under which others reach this node
    #[arg(long, value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// Callers must show who they are [default: yes, but for a loopback address]
    #[arg(long)]
    pub(crate) auth: bool,
    /// The server's certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authorities whose client certificates are accepted (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Listen on an address that others reach, without authentication or without TLS
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum UpgradeCommand {
    /// Let the newer format into the journal, once no older node is alive; audited
    Finish(OperatorArgs),
}

/// Nodes, and the engine if one is started, live in a temporary directory and end with this command.
#[derive(Args, Debug)]
pub(crate) struct DevClusterArgs {
    /// The engine that holds the journal: postgres://…, etcd://…, zookeeper://…, redis://…
    #[arg(long, value_name = "URL", env = "LEASEHOLD_JOURNAL", hide_env_values = true)]
    pub(crate) journal: Option<String>,
    /// Start a private engine for it instead
    #[arg(long, value_enum, conflicts_with = "journal")]
    pub(crate) engine: Option<DevEngine>,
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = number::whole::<usize>, default_value_t = 3)]
    pub(crate) nodes: usize,
    /// Name of the cluster on the engine
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub(crate) cluster: String,
    /// Keep everything in this directory instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// An engine that can be started for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum DevEngine {
    /// One etcd, which must be installed.
    Etcd,
}
