//! The command line as meant: every name, id and number checked, every default filled in. What has a [`Plan`] can only
//! fail for reasons outside of the command line.

mod access;
mod ask;
mod hold;
mod words;

use std::path::PathBuf;

use leasehold_types::FencingToken;

use crate::args::{
    AccessArgs, AdviseArgs, BackupArgs, BenchArgs, CheckHistoryArgs, Cli, Command, JournalCommand,
    JournalCopyArgs, KeepChildArgs, ServeArgs, SiteArgs,
};
use crate::bench::{BenchPlan, Transport, Workload};
use crate::client::Servers;
use crate::commands::advise::AdvisePlan;
use crate::commands::dev_cluster::DevClusterPlan;
use crate::commands::drill::DrillPlan;
use crate::commands::fence::FencePlan;
use crate::commands::run::{KeepPlan, RunPlan};
use crate::failure::Failure;
use crate::output::Format;
use access::{access, named_servers};
use ask::ask;
use hold::{elect, run};
use words::operator;

pub(crate) use access::servers;
pub(crate) use ask::{Acquire, Ask, LockFilter, Target};
pub(crate) use words::{one_of, resource_name, usage};

pub(crate) enum Plan {
    /// Be a server.
    Serve(ServeArgs),
    /// Run a command under a lock.
    Run(Box<RunPlan>),
    /// Keep the command of a `run`.
    KeepChild(KeepPlan),
    /// Ask a server.
    Ask {
        /// Whom.
        servers: Servers,
        /// How to show the answer.
        format: Format,
        /// What.
        ask: Ask,
    },
    /// Work on a journal itself, which most often no server uses.
    Maintain {
        /// How to show the outcome.
        format: Format,
        /// What.
        maintain: Maintain,
    },
    /// Judge a recorded run.
    CheckHistory {
        /// How to show the verdict.
        format: Format,
        /// Where it is.
        file: PathBuf,
        /// Whether clocks may have drifted further than is permitted.
        wide_clocks: bool,
    },
    /// Measure this machine and a server, and advise.
    Advise {
        /// How to show it.
        format: Format,
        /// What.
        advise: AdvisePlan,
    },
    /// Show that a late write is refused.
    Drill {
        /// How to show it.
        format: Format,
        /// What.
        drill: Box<DrillPlan>,
    },
    /// Be a worker of a drill.
    DrillWorker {
        /// How to prove who one is; which servers is told otherwise.
        access: Servers,
    },
    /// Help those who protect something.
    Fence {
        /// How to show it.
        format: Format,
        /// What.
        fence: FencePlan,
    },
    /// Measure a server.
    Bench(BenchPlan),
    /// Print a completion script.
    Completions(clap_complete::Shell),
    /// Bring up several nodes for trying out.
    DevCluster {
        /// How to show it.
        format: Format,
        /// What.
        plan: DevClusterPlan,
    },
    /// Print the manual page, or write all of them into a directory.
    Man(Option<PathBuf>),
}

/// Who acts, and why.
pub(crate) struct Operator {
    pub(crate) actor: String,
    pub(crate) reason: String,
}

/// What to back up, and who notes it.
pub(crate) struct BackupPlan {
    pub(crate) site: SiteArgs,
    pub(crate) file: PathBuf,
    pub(crate) operator: Operator,
    /// The nodes that serve the journal; `None` if nobody does.
    pub(crate) servers: Option<Servers>,
}

/// Work on a journal.
pub(crate) enum Maintain {
    Backup(BackupPlan),
    Restore { site: SiteArgs, file: PathBuf, operator: Operator },
    Recover { site: SiteArgs, token_floor: Option<FencingToken>, operator: Operator },
    Copy { from: SiteArgs, to: SiteArgs, operator: Operator },
}

impl Plan {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`] with what is wrong, naming the argument.
    pub(crate) fn new(cli: Cli) -> Result<Self, Failure> {
        let format = cli.output;
        let maintain = |maintain| Ok(Self::Maintain { format, maintain });
        match cli.command {
            Command::Serve(args) => Ok(Self::Serve(args)),
            Command::Run(args) => Ok(Self::Run(Box::new(run(args, access(&cli.access)?)?))),
            Command::Elect(args) => Ok(Self::Run(Box::new(elect(args, format, access(&cli.access)?)?))),
            Command::KeepChild(KeepChildArgs { name, group, command }) => {
                Ok(Self::KeepChild(KeepPlan { name, group, command }))
            }
            Command::Backup(args) => maintain(Maintain::Backup(backup(args, &cli.access)?)),
            Command::Restore(args) => {
                let operator = operator(args.operator)?;
                maintain(Maintain::Restore { site: args.site, file: args.file, operator })
            }
            Command::Recover(args) => {
                let (site, token_floor) = (args.site, args.token_floor);
                maintain(Maintain::Recover { site, token_floor, operator: operator(args.operator)? })
            }
            Command::Journal(JournalCommand::Copy(args)) => maintain(copy(args)?),
            Command::Advise(args) => Ok(Self::Advise { format, advise: advise(&args, &cli.access)? }),
            Command::Drill(args) => {
                let drill = Box::new(DrillPlan::new(&args, named_servers(&cli.access)?, &cli.access)?);
                Ok(Self::Drill { format, drill })
            }
            Command::DrillWorker => Ok(Self::DrillWorker { access: access(&cli.access)? }),
            Command::Fence(command) => Ok(Self::Fence { format, fence: FencePlan::new(&command)? }),
            Command::Bench(args) => bench(args, format, &cli.access).map(Self::Bench),
            Command::CheckHistory(CheckHistoryArgs { file, wide_clocks }) => {
                Ok(Self::CheckHistory { format, file, wide_clocks })
            }
            Command::Completions { shell } => Ok(Self::Completions(shell)),
            Command::Man { to } => Ok(Self::Man(to)),
            Command::DevCluster(args) => Ok(Self::DevCluster { format, plan: DevClusterPlan::new(args)? }),
            asked => Ok(Self::Ask { servers: access(&cli.access)?, format, ask: ask(asked)? }),
        }
    }
}

fn backup(args: BackupArgs, named: &AccessArgs) -> Result<BackupPlan, Failure> {
    let BackupArgs { site, file, unserved, operator: by } = args;
    if unserved && !named.server.is_empty() {
        return Err(Failure::Usage("--unserved asks no server: leave --server out".into()));
    }
    let servers = if unserved { None } else { Some(access(named)?) };
    Ok(BackupPlan { site, file, operator: operator(by)?, servers })
}

fn copy(args: JournalCopyArgs) -> Result<Maintain, Failure> {
    let to_cluster = args.to_cluster.unwrap_or_else(|| args.cluster.clone());
    let is_named_otherwise = !args.from.starts_with("embedded") && to_cluster != args.cluster;
    if args.from == args.to && !is_named_otherwise {
        let why = "--from and --to are the same; on an engine the copy may have another name, with --to-cluster; an \
                   embedded journal is copied by `backup` and `restore`";
        return Err(Failure::Usage(why.into()));
    }
    let site = |journal, cluster| SiteArgs { data: args.data.clone(), journal, cluster };
    let (from, to) = (site(args.from, args.cluster), site(args.to, to_cluster));
    Ok(Maintain::Copy { from, to, operator: operator(args.operator)? })
}

fn advise(args: &AdviseArgs, named: &AccessArgs) -> Result<AdvisePlan, Failure> {
    if args.measure_for.is_zero() || args.recovery.is_zero() {
        return Err(Failure::Usage("--for and --recovery must be more than 0".into()));
    }
    Ok(AdvisePlan {
        server: access(named)?.first().clone(),
        measure_for: args.measure_for,
        recovery: args.recovery,
        ttl: args.ttl,
    })
}

fn bench(args: BenchArgs, format: Format, named: &AccessArgs) -> Result<BenchPlan, Failure> {
    if args.clients == 0 || args.duration.is_zero() || args.rate == Some(0) {
        return Err(Failure::Usage("--clients, --duration and --rate must be more than 0".into()));
    }
    if args.transport == Transport::Grpc && args.workload == Workload::Renew {
        return Err(Failure::Usage(
            "the client renews its session by itself: measure renewals over HTTP".into(),
        ));
    }
    Ok(BenchPlan {
        workload: args.workload,
        transport: args.transport,
        clients: args.clients,
        duration: args.duration,
        rate: args.rate,
        server: if args.own_server { None } else { Some(access(named)?.first().clone()) },
        format,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::owner::default_owner;

    fn plan(line: &str) -> Result<Plan, String> {
        let cli = Cli::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        Plan::new(cli).map_err(|failure| failure.to_string())
    }

    fn acquire(line: &str) -> Acquire {
        match plan(line) {
            Ok(Plan::Ask { ask: Ask::Acquire(acquire), .. }) => *acquire,
            Ok(_) => panic!("not an acquire: {line}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn an_acquire_always_has_a_random_lease_id_and_an_owner() {
        let acquire = acquire("leasehold acquire billing/close");
        assert!(acquire.lease_id.is_random());
        assert_eq!(acquire.owner, Some(default_owner()));
        assert_eq!(acquire.ttl_ms, None, "the default is the server's");
    }

    #[test]
    fn a_lease_in_a_session_leaves_the_owner_to_the_session() {
        let acquire = acquire("leasehold acquire a --session 67e55044-10b1-426f-9247-bb680e5fe0c8");
        assert_eq!(acquire.owner, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_argument_named() {
        let cases = [
            (
                "leasehold acquire a --mode writer",
                "--mode: `writer` is not one of `exclusive`, `shared`, `semaphore`",
            ),
            ("leasehold acquire a --limit 3", "--limit goes with --mode semaphore, and only with it"),
            ("leasehold acquire a --mode semaphore", "--limit goes with --mode semaphore, and only with it"),
            ("leasehold acquire a --label x", "a label is written KEY=VALUE"),
            (
                "leasehold release x",
                "lease id `x`: not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            ),
            (
                "leasehold --server http://a:1 backup f --unserved --actor a --reason r",
                "--unserved asks no server: leave --server out",
            ),
            ("leasehold backup f --actor a --reason=", "--reason is empty; it is kept in the audit log"),
            (
                "leasehold --server ftp://x status",
                "--server: `ftp://x` is not of the form http://HOST:PORT or https://HOST:PORT",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(plan(line).err().as_deref(), Some(expected), "{line}");
        }
    }
}
