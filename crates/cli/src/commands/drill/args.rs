//! `drill`, as typed.

use std::time::Duration;

use clap::Args;

use crate::{duration, number};

/// Starts a worker that takes a lock and writes, stops it past its ttl, lets a second one take over and write, wakes the
/// first, and shows what comes of its late write. Ends with 0 when it was refused, 1 when it was accepted. Whatever it
/// needs it makes for itself, and removes again.
#[derive(Args, Debug)]
pub(crate) struct DrillArgs {
    /// What is written: postgres://…, mysql://…, redis://…, etcd://…, s3://…, dynamodb://…, http://…, storage://…, or an
    /// SQLite file [default: an SQLite file of its own] [env: LEASEHOLD_DRILL_FENCE]
    #[arg(long, value_name = "URL")]
    pub(crate) fence: Option<String>,
    /// Your own table, behind your own trigger, instead of one that is made and removed; needs --server, since its fence
    /// has seen tokens of that server
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// With --table: the statement that writes [default: sets one column of one row to what it is]
    #[arg(long, value_name = "SQL", requires = "table")]
    pub(crate) write: Option<String>,
    /// The lock to take [default: one of its own; with --table the table's name]
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) resource: Option<String>,
    /// How long the leases live without a renewal
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "2s")]
    pub(crate) ttl: Duration,
    /// Hold the late write in the network, instead of stopping the worker
    #[arg(long)]
    pub(crate) delay_write: bool,
    /// Ask no fence: shows what would have happened
    #[arg(long, conflicts_with = "table")]
    pub(crate) without_fence: bool,
    /// Note the outcome in this roll-out, for `fence status`: sqlite:PATH, postgres://…, redis://… or file:DIRECTORY
    #[arg(long, value_name = "URL", env = "LEASEHOLD_FENCE_ROLLOUT", hide_env_values = true)]
    pub(crate) rollout: Option<String>,
    /// Your own program is both workers: a line for the shell, run with LEASEHOLD_FENCING_TOKEN and the like. It is stopped
    /// at its first line of output; it must end with 0 only if its write was accepted
    #[arg(long, value_name = "CMD", conflicts_with_all = ["fence", "table", "delay_write", "without_fence"])]
    pub(crate) worker: Option<String>,
    /// A running program is the one that is stopped: the process that holds --resource; --worker then is its successor
    #[arg(long, value_name = "PID", value_parser = number::whole::<i32>, requires_all = ["resource", "worker", "check"], conflicts_with_all = ["delay_write", "without_fence"])]
    pub(crate) pid: Option<i32>,
    /// With --worker or --pid: a line for the shell that ends with 0 if the data is as the successor left it
    #[arg(long, value_name = "CMD", requires = "worker")]
    pub(crate) check: Option<String>,
    /// With --pid: how long the program may take to write after it was woken
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "2s", requires = "pid")]
    pub(crate) settle: Duration,
}
