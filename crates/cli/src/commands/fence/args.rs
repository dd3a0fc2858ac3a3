//! `fence`, as typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::{duration, number};

#[derive(Subcommand, Debug)]
pub(crate) enum FenceCommand {
    /// Print the migration that fences a table, with its way back
    Sql(SqlArgs),
    /// Serve as a reverse proxy that refuses old tokens on behalf of a service nobody can change
    Proxy(ProxyArgs),
    /// Serve files that refuse old tokens: the reference storage
    Storage(StorageArgs),
    /// Show how far fences are switched on; ends with 0 if the next stage is safe for all that is shown, else with 1
    Status(StatusArgs),
    /// Switch a prefix of lock names to a stage, in every process that shares the roll-out
    Stage(StageArgs),
    /// Let everything under a prefix through for a while, in an emergency; kept with actor and reason
    Override(OverrideArgs),
}

/// Where the stages are.
#[derive(Args, Debug)]
pub(crate) struct RolloutArgs {
    /// The roll-out that the processes share: sqlite:PATH, postgres://…, redis://… or file:DIRECTORY
    #[arg(
        long,
        value_name = "URL",
        default_value = "sqlite:leasehold-fence.db",
        env = "LEASEHOLD_FENCE_ROLLOUT",
        hide_env_values = true
    )]
    pub(crate) rollout: String,
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Only prefixes that begin with this
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) rollout: RolloutArgs,
}

#[derive(Args, Debug)]
pub(crate) struct StageArgs {
    /// The prefix
    pub(crate) prefix: String,
    /// count, shadow, canary:PERCENT, enforce or require
    pub(crate) stage: String,
    /// Who switches [default: user@host:pid]
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Switch although something was seen that the stage would stop
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) rollout: RolloutArgs,
}

#[derive(Args, Debug)]
pub(crate) struct OverrideArgs {
    /// The prefix
    pub(crate) prefix: String,
    /// How long it lasts
    #[arg(long = "for", value_name = "DUR", value_parser = duration::parse, default_value = "15m")]
    pub(crate) lasts: Duration,
    /// Who makes it [default: user@host:pid]
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Why; kept
    #[arg(long, required_unless_present = "end")]
    pub(crate) reason: Option<String>,
    /// End the one that is in force
    #[arg(long, conflicts_with = "reason")]
    pub(crate) end: bool,
    #[command(flatten)]
    pub(crate) rollout: RolloutArgs,
}

/// Requests reach the service in the order of their tokens (X-Fencing-Token): a higher one is let through when all lower
/// ones have been answered; from then on lower ones get 409. Requests that only read pass.
#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// The service, by plain HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// Which lock guards a path, such as /books/{year}=books/{year}; may be given several times, the first that fits counts
    #[arg(long, value_name = "PATH=LOCK")]
    pub(crate) lock: Vec<String>,
    /// The header that names the lock, where callers are trusted to name the right one
    #[arg(long, value_name = "HEADER")]
    pub(crate) lock_header: Option<String>,
    /// The locks are semaphores: each permit (X-Fencing-Permit) has an order of its own
    #[arg(long)]
    pub(crate) each_permit: bool,
    /// Let requests pass that no lock guards, instead of refusing them
    #[arg(long)]
    pub(crate) pass_unmatched: bool,
    /// Where the highest tokens are kept: sqlite:PATH, postgres://… or redis://…
    #[arg(
        long,
        value_name = "URL",
        default_value = "sqlite:leasehold-fence.db",
        env = "LEASEHOLD_FENCE_STATE",
        hide_env_values = true
    )]
    pub(crate) state: String,
    /// The stage of prefixes that `fence stage` has not switched: count, shadow, canary:PERCENT, enforce or require
    #[arg(long, default_value = "enforce")]
    pub(crate) stage: String,
    /// The roll-out that it shares with others [default: kept with the state]
    #[arg(long, value_name = "URL", env = "LEASEHOLD_FENCE_ROLLOUT", hide_env_values = true)]
    pub(crate) rollout: Option<String>,
    /// How long a request that was never answered keeps its resource closed to higher tokens
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "30s")]
    pub(crate) drain: Duration,
    /// Take signed tokens alone, of the keys in this file, which it shares with the service; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// With --keys: the tenant whose tokens count
    #[arg(long, value_name = "NAME", default_value = "default", requires = "keys")]
    pub(crate) tenant: String,
    /// With --keys: the least generation that counts; after `recover` or `restore`, the new one
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>, default_value_t = 1, requires = "keys")]
    pub(crate) least_generation: u64,
    /// With --keys: take plain numbers too, while callers are moved to signed tokens
    #[arg(long, requires = "keys")]
    pub(crate) accept_plain: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7421")]
    pub(crate) listen: String,
    /// The lock service, by plain HTTP, to tell that the fence is at work and what it rejected [default: none]; the
    /// environment may have a credential for it, as LEASEHOLD_CREDENTIAL
    #[arg(long, value_name = "URL")]
    pub(crate) report_to: Option<String>,
    /// Address for /metrics and /healthz [default: none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
    /// Listen beyond loopback although callers are not authenticated
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Writes come as POST /v1/writes with resource, token and bytes; a token older than the newest is refused in the same
/// step as the write.
#[derive(Args, Debug)]
pub(crate) struct StorageArgs {
    /// The directory, which belongs to it alone
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7422")]
    pub(crate) listen: String,
    /// Listen beyond loopback although callers are not authenticated
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// A form decides what stands between a late write and the table: a fence table that programs ask in their own
/// transaction, token columns in the row itself, or triggers that no SQL gets past.
#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// postgres, mariadb, mysql or sqlite
    #[arg(long)]
    pub(crate) dialect: String,
    /// The table to fence, with its schema if need be; not used by --form table
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// table, column or trigger
    #[arg(long, default_value = "trigger")]
    pub(crate) form: String,
    /// With --form trigger: the lock that guards the whole table [default: the table's name]
    #[arg(long, value_name = "RESOURCE", conflicts_with = "row_locks")]
    pub(crate) lock: Option<String>,
    /// With --form trigger: each row has a lock of its own, this prefix followed by the row's key
    #[arg(long, value_name = "PREFIX", requires = "key_column")]
    pub(crate) row_locks: Option<String>,
    /// The key column that names a row's lock
    #[arg(long, value_name = "COLUMN", requires = "row_locks")]
    pub(crate) key_column: Option<String>,
    /// PostgreSQL: the schema of the fence table and its functions [default: public]
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,
    /// Leave out what a database has once: for the second table and those after it
    #[arg(long)]
    pub(crate) no_base: bool,
    /// Print the way back alone, ready to run
    #[arg(long)]
    pub(crate) down: bool,
}
