//! `fence`, as typed.

use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub(crate) enum FenceCommand {
    /// Print the migration that fences a table, with its way back
    Sql(SqlArgs),
}

/// A form decides what stands between a late write and the table: a fence table that programs ask in their own
/// transaction, token columns in the row itself, or triggers that no SQL gets past.
#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// postgres, mariadb, mysql or sqlite
    #[arg(long)]
    pub(crate) dialect: String,
    /// The table to fence, with its schema if need be; not used by --form table
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// table, column or trigger
    #[arg(long, default_value = "trigger")]
    pub(crate) form: String,
    /// With --form trigger: the lock that guards the whole table [default: the table's name]
    #[arg(long, value_name = "RESOURCE", conflicts_with = "row_locks")]
    pub(crate) lock: Option<String>,
    /// With --form trigger: each row has a lock of its own, this prefix followed by the row's key
    #[arg(long, value_name = "PREFIX", requires = "key")]
    pub(crate) row_locks: Option<String>,
    /// The key column that names a row's lock
    #[arg(long, value_name = "COLUMN", requires = "row_locks")]
    pub(crate) key: Option<String>,
    /// PostgreSQL: the schema of the fence table and its functions [default: public]
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Option<String>,
    /// Leave out what a database has once: for the second table and those after it
    #[arg(long)]
    pub(crate) no_base: bool,
    /// Print the way back alone, ready to run
    #[arg(long)]
    pub(crate) down: bool,
}
