//! `run` and `elect`: a command under a lease.

use std::time::Duration;

use leasehold_types::{Class, Mode};

use super::words::{election_resource, kind, one_of, owner_or_default, resource_name};
use crate::args::{ElectArgs, RunArgs};
use crate::client::Servers;
use crate::commands::election::Candidacy;
use crate::commands::run::RunPlan;
use crate::failure::Failure;
use crate::output::Format;

/// A command that is there, but has no name.
fn check_command(command: &[String]) -> Result<(), Failure> {
    match command.first() {
        Some(program) if program.is_empty() => Err(Failure::Usage("the command is empty".into())),
        _ => Ok(()),
    }
}

pub(super) fn run(args: RunArgs, servers: Servers) -> Result<RunPlan, Failure> {
    let (mode, class) = kind(&args.kind)?;
    check_command(&args.command)?;
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
        owner: owner_or_default(args.owner.as_deref())?,
        ttl: args.ttl,
        wait: args.wait,
        mode,
        limit: args.kind.limit,
        class,
        on_lost: args.on_lost,
        run_when_unavailable,
        grace: grace(args.grace, args.ttl)?,
        command: args.command,
        candidacy: None,
    })
}

pub(super) fn elect(args: ElectArgs, format: Format, servers: Servers) -> Result<RunPlan, Failure> {
    check_command(&args.command)?;
    Ok(RunPlan {
        servers,
        resource: election_resource(&args.name)?,
        owner: owner_or_default(args.owner.as_deref())?,
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
