//! The command line as typed. Nothing is checked here beyond its shape; [`crate::plan`] says what it means.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::commands::credential::CredentialCommand;
use crate::commands::drill::DrillArgs;
use crate::commands::fence::FenceCommand;
use crate::duration;
use crate::output::Format;

/// What the program is, in its help and on its manual page.
const ABOUT: &str = "Distributed locks with leases and fencing tokens";
/// Options that every command has stand apart from its own.
const EVERYWHERE: &str = "For all commands";

/// The whole command line.
#[derive(Parser, Debug)]
#[command(name = "leasehold", version, about = ABOUT, long_about = ABOUT, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Tables for people, JSON for scripts
    #[arg(long, global = true, help_heading = EVERYWHERE, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Format,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How to reach a server.
#[derive(Args, Debug)]
pub(crate) struct AccessArgs {
    /// Servers to ask, several times or separated by commas; they are tried in order [env: LEASEHOLD_SERVER]
    /// [default: http://127.0.0.1:7420]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "URL")]
    pub(crate) server: Vec<String>,
    /// File with the credential to come with; the environment may have the credential itself, as LEASEHOLD_CREDENTIAL
    /// [env: LEASEHOLD_CREDENTIAL_FILE]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE")]
    pub(crate) credential_file: Option<PathBuf>,
    /// Certificate authorities to trust, instead of this machine's [env: LEASEHOLD_CA]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Certificate to show to the server, with --key [env: LEASEHOLD_CERT]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key [env: LEASEHOLD_KEY]
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the server
    Serve(ServeArgs),
    /// Run a command while holding a lock
    Run(RunArgs),
    /// Lead: run a command, or nothing but lead, while elected
    Elect(ElectArgs),
    /// Follow who leads
    Observe {
        /// Name of the election
        name: String,
        /// End after so many changes
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
    /// Give leadership up
    Resign {
        /// Name of the election
        name: String,
        /// The candidate who comes next, instead of the first in line
        #[arg(long, value_name = "OWNER")]
        to: Option<String>,
        /// The leader's lease [default: the one of the `elect` that this runs under]
        #[arg(long, value_name = "UUID", env = "LEASEHOLD_LEASE_ID")]
        lease_id: String,
    },
    /// Keep the command of `run`; started by it alone
    #[command(hide = true)]
    KeepChild(KeepChildArgs),
    /// Acquire a resource and print the lease
    Acquire(AcquireArgs),
    /// Renew a lease
    Renew(RenewArgs),
    /// Release a lease
    Release(ReleaseArgs),
    /// Explain one resource: holders, waiters, last token, how earlier leases ended
    Show {
        /// Name of the resource
        resource: String,
    },
    /// List held locks
    Ls(LsArgs),
    /// Follow events as they are committed
    Watch(WatchArgs),
    /// Open, renew, list and end sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// Take a resource away from its holders; audited
    ForceRelease(ForceReleaseArgs),
    /// Read, verify or export the audit log
    Audit(AuditArgs),
    /// Who is let in to a protected server, and what they may do
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// What the server is and does, and which nodes there are
    Status,
    /// Finish the upgrade of a cluster
    #[command(subcommand)]
    Upgrade(UpgradeCommand),
    /// Bring up several nodes on this machine, for trying out
    DevCluster(DevClusterArgs),
    /// Copy a journal into one file
    Backup(BackupArgs),
    /// Make a journal from a backup; raises generation and tokens
    Restore(RestoreArgs),
    /// Accept a damaged, regressed or copied journal; raises generation and tokens
    Recover(RecoverArgs),
    /// Move the state to another journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Watch locks, waiters, hold times, rates and hot prefixes live
    Top(TopArgs),
    /// Measure this machine and the server, and say which ttl fits
    Advise(AdviseArgs),
    /// Stop a holder past its ttl and show that its late write is refused
    Drill(DrillArgs),
    /// Take part in a drill; started by it alone
    #[command(hide = true)]
    DrillWorker,
    /// Migrations, a proxy and a store that refuse old fencing tokens; how far fences are switched on
    #[command(subcommand)]
    Fence(FenceCommand),
    /// Put load on a server and measure it
    Bench(BenchArgs),
    /// Say whether a recorded run kept every promise
    CheckHistory(CheckHistoryArgs),
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write it into this directory instead, and a page of every command beside it
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
}

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
    /// exclusive, shared or semaphore
    #[arg(long, default_value = "exclusive")]
    pub(crate) mode: String,
    /// The most holders at once, with --mode semaphore
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// correctness or efficiency
    #[arg(long, default_value = "correctness")]
    pub(crate) class: String,
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
    /// exclusive, shared or semaphore
    #[arg(long, default_value = "exclusive")]
    pub(crate) mode: String,
    /// The most holders at once, with --mode semaphore
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// correctness or efficiency
    #[arg(long, default_value = "correctness")]
    pub(crate) class: String,
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

#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Only locks of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Only locks of this session
    #[arg(long, value_name = "SESSION_ID")]
    pub(crate) session: Option<String>,
    /// Only locks whose holders reported missed renewals
    #[arg(long)]
    pub(crate) failing: bool,
    /// Only locks held at least this long
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) held_longer_than: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Begin after this event instead of now
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) after: Option<String>,
    /// End after so many events
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Only resources whose names begin with this
    pub(crate) prefix: Option<String>,
    /// How often to look
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "1s")]
    pub(crate) every: Duration,
    /// Print one frame and end; with --output json always
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckHistoryArgs {
    /// The history: one JSON object a line
    pub(crate) file: PathBuf,
    /// Clocks ran faster or slower than one per cent: do not judge what rests on that (S9, S10)
    #[arg(long)]
    pub(crate) wide_clocks: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseArgs {
    /// How long to measure
    #[arg(long = "for", value_name = "DUR", value_parser = duration::parse, default_value = "5s")]
    pub(crate) measure_for: Duration,
    /// How long others may wait for the lock of a holder that died
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "30s")]
    pub(crate) recovery: Duration,
    /// Judge this ttl instead of proposing one
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
}

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
    #[arg(long, value_name = "N")]
    pub(crate) token: Option<u64>,
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
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

#[derive(Subcommand, Debug, Clone, Copy)]
pub(crate) enum AuditCommand {
    /// Recompute the hash chain
    Verify,
    /// Write every kept entry as one JSON object a line
    Export,
}

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
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// File to write; it must not exist
    pub(crate) file: PathBuf,
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
    #[arg(long, value_name = "N")]
    pub(crate) token_floor: Option<u64>,
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
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
    #[arg(long, value_name = "N", default_value_t = 3)]
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

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// What each client does
    #[arg(value_enum, default_value_t)]
    pub(crate) workload: crate::bench::Workload,
    /// How clients reach the server
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: crate::bench::Transport,
    /// Connections, or tasks on one gRPC stream, each with one request under way
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) clients: usize,
    /// How long to measure
    #[arg(long, value_name = "DUR", value_parser = duration::parse, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Begin so many operations a second, instead of as many as possible
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<u64>,
    /// Measure a server of its own, started on a temporary directory and stopped afterwards
    #[arg(long)]
    pub(crate) own_server: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Two of one name with different types end in a panic, and only when the command is used.
    #[test]
    fn no_command_has_a_flag_of_the_name_of_a_global_one() {
        fn look(command: &clap::Command, globals: &[String]) {
            for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
                let id = argument.get_id().to_string();
                assert!(!globals.contains(&id), "{} has its own --{id}", command.get_name());
            }
            command.get_subcommands().for_each(|command| look(command, globals));
        }
        let cli = Cli::command();
        let globals = cli.get_arguments().filter(|argument| argument.is_global_set());
        let globals: Vec<String> = globals.map(|argument| argument.get_id().to_string()).collect();
        assert!(globals.contains(&"key".to_owned()));
        look(&cli, &globals);
    }

    #[test]
    fn force_release_needs_exactly_one_target() {
        let parse = |extra: &[&str]| {
            let base = ["leasehold", "force-release", "a", "--actor", "x", "--reason", "y"];
            Cli::try_parse_from(base.iter().chain(extra))
        };
        assert!(parse(&[]).is_err());
        assert!(parse(&["--all", "--token", "3"]).is_err());
        assert!(parse(&["--all"]).is_ok());
        assert!(parse(&["--token", "3"]).is_ok());
    }
}
