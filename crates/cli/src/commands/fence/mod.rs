//! `fence`: helpers for those who protect something with fencing tokens.

mod args;
mod keys;
mod proxy;
pub(crate) mod rollout;
mod serving;
mod sql;
mod storage;

pub(crate) use args::FenceCommand;
use proxy::ProxyPlan;
use rollout::RolloutPlan;
use sql::SqlPlan;
use storage::StoragePlan;

use leasehold_fence::rollout::Stage;
use leasehold_types::WallTime;
use rustix::time::{ClockId, clock_gettime};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::plan::one_of;

/// What `fence` is to do.
pub(crate) enum FencePlan {
    /// Print a migration.
    Sql(SqlPlan),
    /// Be a proxy.
    Proxy(Box<ProxyPlan>),
    /// Look at a roll-out, or change it.
    Rollout(RolloutPlan),
    /// Be a storage.
    Storage(StoragePlan),
}

impl FencePlan {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`], naming the argument.
    pub(crate) fn new(command: &FenceCommand) -> Result<Self, Failure> {
        match command {
            FenceCommand::Sql(args) => SqlPlan::new(args).map(Self::Sql),
            FenceCommand::Proxy(args) => Ok(Self::Proxy(Box::new(ProxyPlan::new(args)?))),
            FenceCommand::Status(args) => Ok(Self::Rollout(RolloutPlan::status(args))),
            FenceCommand::Stage(args) => RolloutPlan::stage(args).map(Self::Rollout),
            FenceCommand::Override(args) => RolloutPlan::overriding(args).map(Self::Rollout),
            FenceCommand::Storage(args) => StoragePlan::new(args).map(Self::Storage),
        }
    }
}

/// Does it.
pub(crate) async fn fence(out: &mut Out, plan: FencePlan) -> Result<Exit, Failure> {
    match plan {
        FencePlan::Sql(plan) => sql::sql(out, &plan),
        FencePlan::Proxy(plan) => proxy::serve(*plan).await,
        FencePlan::Rollout(plan) => rollout::rollout(out, plan).await,
        FencePlan::Storage(plan) => storage::serve(plan).await,
    }
}

fn stage(flag: &str, text: &str) -> Result<Stage, Failure> {
    let words = ["count", "shadow", "canary:PERCENT", "enforce", "require"];
    Stage::parse(text).ok_or_else(|| one_of(flag, text, &words))
}

/// The time of day, which ends overrides and nothing else.
fn wall_time() -> WallTime {
    let now = clock_gettime(ClockId::Realtime);
    let ms = now.tv_sec.saturating_mul(1_000).saturating_add(now.tv_nsec / 1_000_000);
    WallTime(u64::try_from(ms).unwrap_or(0))
}
