//! Doing what is meant: one function for each command.

mod acquire;
pub(crate) mod advise;
mod audit;
mod backup;
mod check_history;
pub(crate) mod credential;
pub(crate) mod dev_cluster;
pub(crate) mod drill;
pub(crate) mod election;
pub(crate) mod fence;
mod force_release;
mod lease;
mod ls;
mod maintain;
pub(crate) mod run;
mod serve;
mod session;
mod show;
mod status;
mod top;
mod upgrade;
mod watch;

use std::future::Future;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use tokio::runtime::{Builder, Runtime};

use crate::args::Cli;
use crate::bench;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::plan::{Ask, Plan};

/// Does it.
pub(crate) fn perform(plan: Plan) -> Result<ExitCode, Failure> {
    match plan {
        Plan::Run(plan) => run::run(*plan),
        Plan::KeepChild(plan) => run::keep(plan),
        plan => answered(plan).map(ExitCode::from),
    }
}

fn answered(plan: Plan) -> Result<Exit, Failure> {
    match plan {
        Plan::Run(_) | Plan::KeepChild(_) => unreachable!("perform takes what has a child"),
        Plan::Serve(args) => serve::serve(&args),
        Plan::Ask { servers, format, ask } => {
            block_on(Builder::new_current_thread(), answer(&Client::new(servers), &mut Out::new(format), ask))
        }
        Plan::Maintain { format, maintain } => {
            block_on(Builder::new_multi_thread(), maintain::maintain(&mut Out::new(format), maintain))
        }
        Plan::Advise { format, advise } => {
            block_on(Builder::new_current_thread(), advise::advise(&mut Out::new(format), &advise))
        }
        Plan::Drill { format, drill: plan } => {
            block_on(Builder::new_multi_thread(), drill::drill(&mut Out::new(format), *plan))
        }
        Plan::DrillWorker { access } => block_on(Builder::new_current_thread(), drill::work(&access)),
        Plan::Fence { format, fence: plan } => {
            block_on(Builder::new_multi_thread(), fence::fence(&mut Out::new(format), plan))
        }
        Plan::CheckHistory { format, file, wide_clocks } => {
            check_history::check_history(&mut Out::new(format), &file, wide_clocks)
        }
        Plan::Bench(plan) => block_on(Builder::new_current_thread(), bench::run(plan)),
        Plan::DevCluster { format, plan } => {
            block_on(Builder::new_current_thread(), dev_cluster::dev_cluster(&mut Out::new(format), plan))
        }
        Plan::Completions(shell) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "leasehold", &mut script);
            print(&script)
        }
        Plan::Man(Some(directory)) => {
            let failed =
                |error| Failure::Io { what: format!("cannot write to {}", directory.display()), error };
            std::fs::create_dir_all(&directory).map_err(failed)?;
            clap_mangen::generate_to(Cli::command(), &directory).map_err(failed)?;
            Ok(Exit::Done)
        }
        Plan::Man(None) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(Failure::output)?;
            print(&page)
        }
    }
}

fn print(bytes: &[u8]) -> Result<Exit, Failure> {
    io::stdout().write_all(bytes).map_err(Failure::output)?;
    Ok(Exit::Done)
}

async fn answer(client: &Client, out: &mut Out, ask: Ask) -> Result<Exit, Failure> {
    match ask {
        Ask::Acquire(acquire) => acquire::acquire(client, out, &acquire).await,
        Ask::Renew { lease_id, ttl_ms } => lease::renew(client, out, lease_id, ttl_ms).await,
        Ask::Release { lease_id } => lease::release(client, out, lease_id).await,
        Ask::Show { resource } => show::show(client, out, &resource).await,
        Ask::Ls(filter) => ls::ls(client, out, &filter).await,
        Ask::Watch { prefix, after, count } => watch::watch(client, out, prefix, after, count).await,
        Ask::Observe { name, count } => election::observe(client, out, &name, count).await,
        Ask::Resign { name, lease_id, to } => election::resign(client, out, &name, lease_id, to).await,
        Ask::Top { prefix, every, once } => top::top(client, out, prefix, every, once).await,
        Ask::SessionOpen { owner, ttl_ms, labels } => session::open(client, out, owner, ttl_ms, labels).await,
        Ask::SessionRenew { session_id } => session::renew(client, out, session_id).await,
        Ask::SessionLs => session::ls(client, out).await,
        Ask::SessionEnd { session_id, operator } => session::end(client, out, session_id, operator).await,
        Ask::ForceRelease { resource, target, skip_lock_delay, operator } => {
            force_release::force_release(client, out, &resource, target, skip_lock_delay, operator).await
        }
        Ask::Audit { resource, after } => audit::list(client, out, resource, after).await,
        Ask::UpgradeFinish(operator) => upgrade::finish(client, out, operator).await,
        Ask::AuditVerify => audit::verify(client, out).await,
        Ask::AuditExport { resource, after } => audit::export(client, out, resource, after).await,
        Ask::Credential(command) => credential::credential(client, out, command).await,
        Ask::Status => status::status(client, out).await,
    }
}

fn block_on(
    mut builder: Builder,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime: Runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::Io { what: "cannot start the runtime".into(), error })?;
    runtime.block_on(work)
}
