//! Work on a journal itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use leasehold_types::FencingToken;

use super::OperatorArgs;
use crate::number;

/// Which journal is worked on.
#[derive(Args, Debug)]
pub(crate) struct SiteArgs {
    /// Data directory; `restore` makes it
    #[arg(long, value_name = "DIR", default_value = "leasehold-data", env = "LEASEHOLD_DATA")]
    pub(crate) data: PathBuf,
    /// Where the state lives
    #[arg(
        long,
        value_name = "URL",
        default_value = "embedded",
        env = "LEASEHOLD_JOURNAL",
        hide_env_values = true
    )]
    pub(crate) journal: String,
    /// Name of the cluster on a shared engine
    #[arg(long, value_name = "NAME", default_value = leasehold_server::DEFAULT_CLUSTER, env = "LEASEHOLD_CLUSTER")]
    pub(crate) cluster: String,
}

#[derive(Subcommand, Debug)]
pub(crate) enum JournalCommand {
    /// Copy a journal that nobody serves into an empty one; raises generation and tokens
    Copy(JournalCopyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct JournalCopyArgs {
    /// The journal to copy: `embedded` is the one in --data
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The empty journal to fill
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = "leasehold-data", env = "LEASEHOLD_DATA")]
    pub(crate) data: PathBuf,
    /// Name of the cluster on a shared engine
    #[arg(long, value_name = "NAME", default_value = leasehold_server::DEFAULT_CLUSTER, env = "LEASEHOLD_CLUSTER")]
    pub(crate) cluster: String,
    /// Name of the copy on a shared engine; default: as --cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) to_cluster: Option<String>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// File to write; it must not exist
    pub(crate) file: PathBuf,
    /// No node serves this journal: note the backup in it directly, instead of asking the node at --server to. Needs the
    /// journal for itself: an embedded one that is served is refused, and whoever serves a remote one has to stop
    #[arg(long)]
    pub(crate) unserved: bool,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// The backup
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// Every later fencing token is above this, if that is more than 2^40 above everything known here
    #[arg(long, value_name = "N", value_parser = number::token)]
    pub(crate) token_floor: Option<FencingToken>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}
