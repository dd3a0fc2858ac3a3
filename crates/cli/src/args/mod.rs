//! The command line as typed. Nothing is checked here beyond its shape; [`crate::plan`] says what it means.

mod holding;
mod journals;
mod looking;
mod measuring;
mod operating;
mod serving;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::credential::CredentialCommand;
use crate::commands::drill::DrillArgs;
use crate::commands::fence::FenceCommand;
use crate::number;
use crate::output::Format;

pub(crate) use holding::{AcquireArgs, ElectArgs, KeepChildArgs, KindArgs, ReleaseArgs, RenewArgs, RunArgs};
pub(crate) use journals::{BackupArgs, JournalCommand, JournalCopyArgs, RecoverArgs, RestoreArgs, SiteArgs};
pub(crate) use looking::{LsArgs, TopArgs, WatchArgs};
pub(crate) use measuring::{AdviseArgs, BenchArgs, CheckHistoryArgs};
pub(crate) use operating::{AuditArgs, AuditCommand, ForceReleaseArgs, OperatorArgs, SessionCommand};
pub(crate) use serving::{DevClusterArgs, DevEngine, ServeArgs, UpgradeCommand};

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
        #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
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
    /// Copy a journal into one file, beside a running server; audited
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
