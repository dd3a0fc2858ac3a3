//! `fence`: helpers for those who protect something with fencing tokens.

mod args;
mod sql;

pub(crate) use args::FenceCommand;
pub(crate) use sql::SqlPlan;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;

/// What `fence` is to do.
pub(crate) enum FencePlan {
    /// Print a migration.
    Sql(SqlPlan),
}

impl FencePlan {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`], naming the argument.
    pub(crate) fn new(command: &FenceCommand) -> Result<Self, Failure> {
        match command {
            FenceCommand::Sql(args) => SqlPlan::new(args).map(Self::Sql),
        }
    }
}

/// Does it.
pub(crate) async fn fence(out: &mut Out, plan: FencePlan) -> Result<Exit, Failure> {
    match plan {
        FencePlan::Sql(plan) => sql::sql(out, &plan),
    }
}
