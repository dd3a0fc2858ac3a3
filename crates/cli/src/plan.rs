//! The command line as meant: every name, id and number checked, every default filled in. What has a [`Plan`] can only
//! fail for reasons outside of the command line.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::Security;
use leasehold_api::ELECTION_PREFIX;
use leasehold_types::{Class, FencingToken, Labels, LeaseId, Mode, OwnerId, ResourceName, SessionId};

use crate::args::{
    AccessArgs, AcquireArgs, AdviseArgs, AuditArgs, AuditCommand, BenchArgs, CheckHistoryArgs, Cli, Command,
    ElectArgs, ForceReleaseArgs, JournalCommand, JournalCopyArgs, KeepChildArgs, LsArgs, OperatorArgs,
    RunArgs, ServeArgs, SessionCommand, SiteArgs, TopArgs, UpgradeCommand, WatchArgs,
};
use crate::bench::{BenchPlan, Transport, Workload};
use crate::client::Servers;
use crate::commands::advise::AdvisePlan;
use crate::commands::credential::CredentialCommand;
use crate::commands::dev_cluster::DevClusterPlan;
use crate::commands::drill::DrillPlan;
use crate::commands::election::Candidacy;
use crate::commands::fence::FencePlan;
use crate::commands::run::{KeepPlan, RunPlan};
use crate::duration::ms;
use crate::failure::Failure;
use crate::output::Format;
use crate::owner::default_owner;

/// What to do.
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
    /// Work on a journal that no server uses.
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

/// What is asked of a server.
pub(crate) enum Ask {
    Acquire(Box<Acquire>),
    Renew { lease_id: LeaseId, ttl_ms: Option<u64> },
    Release { lease_id: LeaseId },
    Show { resource: ResourceName },
    Ls(LockFilter),
    Observe { name: String, count: Option<u64> },
    Resign { name: String, lease_id: LeaseId, to: Option<OwnerId> },
    Top { prefix: Option<String>, every: Duration, once: bool },
    Watch { prefix: Option<String>, after: Option<String>, count: Option<u64> },
    SessionOpen { owner: OwnerId, ttl_ms: Option<u64>, labels: Labels },
    SessionRenew { session_id: SessionId },
    SessionLs,
    SessionEnd { session_id: SessionId, operator: Option<Operator> },
    ForceRelease { resource: ResourceName, target: Target, skip_lock_delay: bool, operator: Operator },
    Audit { resource: Option<ResourceName>, after: u64 },
    AuditVerify,
    Credential(CredentialCommand),
    UpgradeFinish(Operator),
    AuditExport { resource: Option<ResourceName>, after: u64 },
    Status,
}

/// An acquire. The id is always chosen here, so that asking again after an unknown outcome is the same command (K3).
pub(crate) struct Acquire {
    pub(crate) resource: ResourceName,
    /// Absent only with a session, whose owner it then is.
    pub(crate) owner: Option<OwnerId>,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) wait: Duration,
    pub(crate) mode: Mode,
    pub(crate) limit: Option<u32>,
    pub(crate) class: Class,
    pub(crate) session: Option<SessionId>,
    pub(crate) lease_id: LeaseId,
    pub(crate) lock_delay_ms: u64,
    pub(crate) max_hold_ms: Option<u64>,
    pub(crate) labels: Labels,
}

/// Which locks to list.
pub(crate) struct LockFilter {
    pub(crate) prefix: Option<String>,
    pub(crate) owner: Option<OwnerId>,
    pub(crate) session: Option<SessionId>,
    pub(crate) missed_at_least: Option<u32>,
    pub(crate) held_longer_than_ms: Option<u64>,
}

/// Which holders are forced out.
pub(crate) enum Target {
    Token(FencingToken),
    All,
}

/// Who acts, and why.
pub(crate) struct Operator {
    pub(crate) actor: String,
    pub(crate) reason: String,
}

/// Work on a journal.
pub(crate) enum Maintain {
    Backup { site: SiteArgs, file: PathBuf },
    Restore { site: SiteArgs, file: PathBuf, operator: Operator },
    Recover { site: SiteArgs, token_floor: Option<u64>, operator: Operator },
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
            Command::Backup(args) => maintain(Maintain::Backup { site: args.site, file: args.file }),
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

fn ask(command: Command) -> Result<Ask, Failure> {
    Ok(match command {
        Command::Acquire(args) => Ask::Acquire(Box::new(acquire(args)?)),
        Command::Renew(args) => Ask::Renew { lease_id: lease_id(&args.lease_id)?, ttl_ms: args.ttl.map(ms) },
        Command::Release(args) => Ask::Release { lease_id: lease_id(&args.lease_id)? },
        Command::Show { resource } => Ask::Show { resource: resource_name(&resource)? },
        Command::Ls(args) => Ask::Ls(filter(args)?),
        Command::Watch(WatchArgs { prefix, after, count }) => Ask::Watch { prefix, after, count },
        Command::Observe { name, count } => {
            election_resource(&name)?;
            Ask::Observe { name, count }
        }
        Command::Resign { name, to, lease_id: id } => {
            election_resource(&name)?;
            Ask::Resign { name, lease_id: lease_id(&id)?, to: to.as_deref().map(owner).transpose()? }
        }
        Command::Top(TopArgs { prefix, every, once }) => Ask::Top { prefix, every, once },
        Command::Session(command) => session(command)?,
        Command::ForceRelease(args) => force_release(args)?,
        Command::Audit(args) => audit(args)?,
        Command::Credential(command) => Ask::Credential(command),
        Command::Status => Ask::Status,
        Command::Upgrade(UpgradeCommand::Finish(args)) => Ask::UpgradeFinish(operator(args)?),
        Command::Serve(_)
        | Command::Run(_)
        | Command::Elect(_)
        | Command::KeepChild(_)
        | Command::Backup(_)
        | Command::DevCluster(_)
        | Command::Restore(_)
        | Command::Recover(_)
        | Command::Journal(_)
        | Command::Advise(_)
        | Command::Drill(_)
        | Command::DrillWorker
        | Command::Fence(_)
        | Command::Bench(_)
        | Command::CheckHistory(_)
        | Command::Completions { .. }
        | Command::Man { .. } => unreachable!("Plan::new takes what is not asked of a server"),
    })
}

fn acquire(args: AcquireArgs) -> Result<Acquire, Failure> {
    let (mode, class) = (mode(&args.mode, args.limit)?, class(&args.class)?);
    let session = args.session.as_deref().map(session_id).transpose()?;
    let owner = match args.owner.as_deref() {
        Some(named) => Some(owner(named)?),
        None if session.is_some() => None,
        None => Some(default_owner()),
    };
    let lease_id = match args.lease_id.as_deref() {
        Some(chosen) => lease_id(chosen)?,
        None => LeaseId::from_bytes(leasehold_types::ids::random()),
    };
    Ok(Acquire {
        resource: resource_name(&args.resource)?,
        owner,
        ttl_ms: args.ttl.map(ms),
        wait: args.wait,
        mode,
        limit: args.limit,
        class,
        session,
        lease_id,
        lock_delay_ms: ms(args.lock_delay),
        max_hold_ms: args.max_hold.map(ms),
        labels: labels(&args.labels)?,
    })
}

fn run(args: RunArgs, servers: Servers) -> Result<RunPlan, Failure> {
    let (mode, class) = (mode(&args.mode, args.limit)?, class(&args.class)?);
    let run_when_unavailable = match args.on_unavailable.as_str() {
        "fail" => false,
        "run" if class == Class::Efficiency => true,
        "run" => {
            let why = "--on-unavailable run needs --class efficiency: without the lock two may run at once";
            return Err(Failure::Usage(why.into()));
        }
        other => return Err(one_of("--on-unavailable", other, &["fail", "run"])),
    };
    Ok(RunPlan {
        servers,
        resource: resource_name(&args.resource)?,
        owner: args.owner.as_deref().map_or_else(|| Ok(default_owner()), owner)?,
        ttl: args.ttl,
        wait: args.wait,
        mode,
        limit: args.limit,
        class,
        on_lost: args.on_lost,
        run_when_unavailable,
        grace: grace(args.grace, args.ttl)?,
        command: args.command,
        candidacy: None,
    })
}

fn elect(args: ElectArgs, format: Format, servers: Servers) -> Result<RunPlan, Failure> {
    Ok(RunPlan {
        servers,
        resource: election_resource(&args.name)?,
        owner: args.owner.as_deref().map_or_else(|| Ok(default_owner()), owner)?,
        ttl: args.ttl,
        wait: args.wait,
        mode: Mode::Exclusive,
        limit: None,
        class: Class::Correctness,
        on_lost: None,
        run_when_unavailable: false,
        grace: grace(args.grace, args.ttl)?,
        command: args.command,
        candidacy: Some(Candidacy { name: args.name, value: args.value, format }),
    })
}

/// Renewals leave every third of a ttl: with more than that the command would be asked to end although all is well.
fn grace(grace: Duration, ttl: Duration) -> Result<Duration, Failure> {
    if grace <= ttl / 3 {
        return Ok(grace);
    }
    let text =
        "--grace is more than a third of --ttl: the command would be asked to end between two renewals";
    Err(Failure::Usage(text.into()))
}

fn election_resource(name: &str) -> Result<ResourceName, Failure> {
    resource_name(name)?;
    resource_name(&format!("{ELECTION_PREFIX}{name}"))
}

fn mode(text: &str, limit: Option<u32>) -> Result<Mode, Failure> {
    let mode = Mode::parse(text).ok_or_else(|| one_of("--mode", text, Mode::ALL))?;
    if (mode == Mode::Semaphore) != limit.is_some() {
        return Err(Failure::Usage("--limit goes with --mode semaphore, and only with it".into()));
    }
    Ok(mode)
}

fn class(text: &str) -> Result<Class, Failure> {
    Class::parse(text).ok_or_else(|| one_of("--class", text, Class::ALL))
}

fn filter(args: LsArgs) -> Result<LockFilter, Failure> {
    Ok(LockFilter {
        prefix: args.prefix,
        owner: args.owner.as_deref().map(owner).transpose()?,
        session: args.session.as_deref().map(session_id).transpose()?,
        missed_at_least: args.failing.then_some(1),
        held_longer_than_ms: args.held_longer_than.map(ms),
    })
}

fn session(command: SessionCommand) -> Result<Ask, Failure> {
    Ok(match command {
        SessionCommand::Open { owner: named, ttl, labels: given } => Ask::SessionOpen {
            owner: named.as_deref().map_or_else(|| Ok(default_owner()), owner)?,
            ttl_ms: ttl.map(ms),
            labels: labels(&given)?,
        },
        SessionCommand::Renew { session_id: id } => Ask::SessionRenew { session_id: session_id(&id)? },
        SessionCommand::Ls => Ask::SessionLs,
        SessionCommand::End { session_id: id, actor, reason } => {
            let named = actor.zip(reason).map(|(actor, reason)| operator(OperatorArgs { actor, reason }));
            Ask::SessionEnd { session_id: session_id(&id)?, operator: named.transpose()? }
        }
    })
}

fn force_release(args: ForceReleaseArgs) -> Result<Ask, Failure> {
    let target = match args.target.token {
        Some(token) => {
            let token =
                FencingToken::new(token).map_err(|error| Failure::Usage(format!("--token: {error}")))?;
            Target::Token(token)
        }
        None => Target::All,
    };
    Ok(Ask::ForceRelease {
        resource: resource_name(&args.resource)?,
        target,
        skip_lock_delay: args.skip_lock_delay,
        operator: operator(args.operator)?,
    })
}

fn audit(args: AuditArgs) -> Result<Ask, Failure> {
    let resource = args.resource.as_deref().map(resource_name).transpose()?;
    let after = args.after;
    Ok(match args.command {
        None => Ask::Audit { resource, after },
        Some(AuditCommand::Verify) => Ask::AuditVerify,
        Some(AuditCommand::Export) => Ask::AuditExport { resource, after },
    })
}

fn copy(args: JournalCopyArgs) -> Result<Maintain, Failure> {
    if args.from == args.to {
        let why = "--from and --to are the same; `backup` and `restore` copy within one engine";
        return Err(Failure::Usage(why.into()));
    }
    let site = |journal| SiteArgs { data: args.data.clone(), journal, cluster: args.cluster.clone() };
    Ok(Maintain::Copy { from: site(args.from), to: site(args.to), operator: operator(args.operator)? })
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

pub(crate) fn servers(named: &[String]) -> Result<Servers, Failure> {
    Servers::new(named, std::env::var("LEASEHOLD_SERVER").ok().filter(|list| !list.is_empty()))
}

/// The servers, and how to prove there who one is: as typed, or else as the environment says.
fn access(args: &AccessArgs) -> Result<Servers, Failure> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut security = Security::from_lookup(given);
    if let Some(path) = &args.credential_file {
        security = security.credential_file(path);
    }
    if let Some(path) = &args.ca {
        security = security.ca_file(path);
    }
    if let (Some(certificate), Some(key)) = (&args.cert, &args.key) {
        security = security.identity_files(certificate, key);
    }
    Ok(servers(&args.server)?.with(security))
}

/// Those that were named, if any were.
fn named_servers(args: &AccessArgs) -> Result<Option<Servers>, Failure> {
    let environment = std::env::var("LEASEHOLD_SERVER").is_ok_and(|list| !list.is_empty());
    (environment || !args.server.is_empty()).then(|| access(args)).transpose()
}

fn operator(args: OperatorArgs) -> Result<Operator, Failure> {
    for (name, text) in [("--actor", &args.actor), ("--reason", &args.reason)] {
        if text.trim().is_empty() {
            return Err(Failure::Usage(format!("{name} is empty; it is kept in the audit log")));
        }
    }
    Ok(Operator { actor: args.actor, reason: args.reason })
}

fn labels(given: &[String]) -> Result<Labels, Failure> {
    let pairs: Option<Vec<(&str, &str)>> = given.iter().map(|label| label.split_once('=')).collect();
    let pairs = pairs.ok_or_else(|| Failure::Usage("a label is written KEY=VALUE".into()))?;
    Labels::new(pairs).map_err(usage)
}

pub(crate) fn resource_name(text: &str) -> Result<ResourceName, Failure> {
    ResourceName::new(text).map_err(usage)
}

fn owner(text: &str) -> Result<OwnerId, Failure> {
    OwnerId::new(text).map_err(usage)
}

fn lease_id(text: &str) -> Result<LeaseId, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("lease id `{text}`: {error}")))
}

fn session_id(text: &str) -> Result<SessionId, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("session id `{text}`: {error}")))
}

pub(crate) fn one_of<W: std::fmt::Display>(flag: &str, given: &str, words: &[W]) -> Failure {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    Failure::Usage(format!("{flag}: `{given}` is not one of {}", words.join(", ")))
}

pub(crate) fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

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
                "leasehold --server ftp://x status",
                "--server: `ftp://x` is not of the form http://HOST:PORT or https://HOST:PORT",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(plan(line).err().as_deref(), Some(expected), "{line}");
        }
    }
}
