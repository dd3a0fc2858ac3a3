//! What is asked of a server.

use std::time::Duration;

use leasehold_types::{Class, FencingToken, Labels, LeaseId, Mode, OwnerId, ResourceName, SessionId};

use super::Operator;
use super::words::{
    election_resource, kind, labels, lease_id, operator, owner, owner_or_default, resource_name, session_id,
};
use crate::args::{
    AcquireArgs, AuditArgs, AuditCommand, Command, ForceReleaseArgs, LsArgs, OperatorArgs, SessionCommand,
    TopArgs, UpgradeCommand, WatchArgs,
};
use crate::commands::credential::CredentialCommand;
use crate::duration::ms;
use crate::failure::Failure;
use crate::owner::default_owner;

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

/// Reads what is asked of a server.
pub(super) fn ask(command: Command) -> Result<Ask, Failure> {
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
            Ask::Resign {
                name,
                lease_id: lease_id(&id)?,
                to: to.as_deref().map(|named| owner("--to", named)).transpose()?,
            }
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
    let (mode, class) = kind(&args.kind)?;
    let session = args.session.as_deref().map(session_id).transpose()?;
    let owner = match args.owner.as_deref() {
        Some(named) => Some(owner("--owner", named)?),
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
        limit: args.kind.limit,
        class,
        session,
        lease_id,
        lock_delay_ms: ms(args.lock_delay),
        max_hold_ms: args.max_hold.map(ms),
        labels: labels(&args.labels)?,
    })
}

fn filter(args: LsArgs) -> Result<LockFilter, Failure> {
    Ok(LockFilter {
        prefix: args.prefix,
        owner: args.owner.as_deref().map(|named| owner("--owner", named)).transpose()?,
        session: args.session.as_deref().map(session_id).transpose()?,
        missed_at_least: args.failing.then_some(1),
        held_longer_than_ms: args.held_longer_than.map(ms),
    })
}

fn session(command: SessionCommand) -> Result<Ask, Failure> {
    Ok(match command {
        SessionCommand::Open { owner: named, ttl, labels: given } => Ask::SessionOpen {
            owner: owner_or_default(named.as_deref())?,
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
    Ok(Ask::ForceRelease {
        resource: resource_name(&args.resource)?,
        target: args.target.token.map_or(Target::All, Target::Token),
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
