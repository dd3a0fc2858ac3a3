//! What operators do to sessions and locks, and read of it.

use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold_types::FencingToken;

use crate::{duration, number};

#[derive(Subcommand, Debug)]
pub(crate) enum SessionCommand {
    /// Open a session and print its id
    Open {
        /// Who, for people [default: user@host:pid]
        #[arg(long)]
        owner: Option<String>,
        /// How long it lives without a renewal [default: 15s]
        #[arg(long, value_name = "DUR", value_parser = duration::parse)]
        ttl: Option<Duration>,
        /// Free-form label; may be given several times
        #[arg(long = "label", value_name = "KEY=VALUE")]
        labels: Vec<String>,
    },
    /// Renew a session, and with it every lease in it
    Renew {
        /// The session
        session_id: String,
    },
    /// List live sessions
    Ls,
    /// End a session and free everything in it
    End {
        /// The session
        session_id: String,
        /// Who ends somebody else's session; audited
        #[arg(long, requires = "reason")]
        actor: Option<String>,
        /// Why
        #[arg(long, requires = "actor")]
        reason: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ForceReleaseArgs {
    /// Name of the resource
    pub(crate) resource: String,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Do not keep the resource closed for its lock delay
    #[arg(long)]
    pub(crate) skip_lock_delay: bool,
}

/// Exactly one of the two.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct TargetArgs {
    /// The holder with this fencing token, and nobody else
    #[arg(long, value_name = "N", value_parser = number::token)]
    pub(crate) token: Option<FencingToken>,
    /// Every holder
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct OperatorArgs {
    /// Who does it
    #[arg(long)]
    pub(crate) actor: String,
    /// Why; kept in the audit log
    #[arg(long)]
    pub(crate) reason: String,
}

#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    /// Only entries about this resource
    #[arg(long)]
    pub(crate) resource: Option<String>,
    /// Only entries after this number
    #[arg(long, value_name = "SEQ", value_parser = number::whole::<u64>, default_value_t = 0)]
    pub(crate) after: u64,
}

#[derive(Subcommand, Debug, Clone, Copy)]
pub(crate) enum AuditCommand {
    /// Recompute the hash chain
    Verify,
    /// Write every kept entry as one JSON object a line
    Export,
}
