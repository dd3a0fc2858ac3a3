//! What holds a lock, by hand or around a command.

use std::time::Duration;

use clap::Args;

use crate::{duration, number};

/// The command runs in a process group of its own, with LEASEHOLD_FENCING_TOKEN and the like in its environment. It is
/// stopped before the lease can end, and when this process dies.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// How long the lease lives without a renewal
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "15s")]
    pub(crate) ttl: Duration,
    /// How long to wait for the lock [default: until interrupted]
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// Line for the shell that is run after the command was stopped because the lock was lost
    #[arg(long, value_name = "CMD")]
    pub(crate) on_lost: Option<String>,
    /// When no server can be reached: fail, or run without a lock (only with --class efficiency)
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) on_unavailable: String,
    /// Time between TERM and KILL when the lock is about to be lost, at most ttl/3 [default: min(2s, ttl/6)]
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "0s")]
    pub(crate) grace: Duration,
    /// Who holds it, for people [default: user@host:pid]
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Name of the resource
    pub(crate) resource: String,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// The leader's fencing token is its term: in LEASEHOLD_FENCING_TOKEN for the command. The command is stopped before the
/// lease can end; a signal is passed on to it, and the next candidate leads once it has ended.
#[derive(Args, Debug)]
pub(crate) struct ElectArgs {
    /// How long leadership lasts without a renewal
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "15s")]
    pub(crate) ttl: Duration,
    /// How long to stand as a candidate [default: until interrupted]
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// What observers learn about the leader, such as its address
    #[arg(long, value_name = "V")]
    pub(crate) value: Option<String>,
    /// Time between TERM and KILL when leadership is about to be lost, at most ttl/3 [default: min(2s, ttl/6)]
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "0s")]
    pub(crate) grace: Duration,
    /// Who stands, for people [default: user@host:pid]
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Name of the election
    pub(crate) name: String,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct KeepChildArgs {
    pub(crate) name: String,
    pub(crate) group: i32,
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct AcquireArgs {
    /// Name of the resource
    pub(crate) resource: String,
    /// How long the lease lives without a renewal [default: 15s, or the session's]
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for it
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "0s")]
    pub(crate) wait: Duration,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// Who holds it, for people [default: user@host:pid]
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Session that the lease lives and ends with
    #[arg(long, value_name = "SESSION_ID")]
    pub(crate) session: Option<String>,
    /// Id of the lease, to ask again after an unknown outcome [default: a new one]
    #[arg(long, value_name = "UUID")]
    pub(crate) lease_id: Option<String>,
    /// Keep the resource closed for this long after an expiry
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "0s")]
    pub(crate) lock_delay: Duration,
    /// End the lease at this age, however often it is renewed
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) max_hold: Option<Duration>,
    /// Free-form label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RenewArgs {
    /// The lease, as `acquire` printed it
    pub(crate) lease_id: String,
    /// Another ttl from now on
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The lease, as `acquire` printed it
    pub(crate) lease_id: String,
}

/// What kind of lock it is.
#[derive(Args, Debug)]
pub(crate) struct KindArgs {
    /// exclusive, shared or semaphore
    #[arg(long, default_value = "exclusive")]
    pub(crate) mode: String,
    /// The most holders at once, with --mode semaphore
    #[arg(long, value_name = "N", value_parser = number::whole::<u32>)]
    pub(crate) limit: Option<u32>,
    /// correctness or efficiency
    #[arg(long, default_value = "correctness")]
    pub(crate) class: String,
}
