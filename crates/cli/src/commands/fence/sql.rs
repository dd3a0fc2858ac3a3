//! `fence sql`: a migration for people to review and for migration tools to run.

use leasehold_fence::sql::ddl::{self, Guarded, Migration};
use leasehold_fence::sql::{Dialect, TableName};
use serde_json::json;

use super::args::SqlArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::{one_of, resource_name, usage};

const DIALECTS: &[&str] = &["postgres", "mariadb", "mysql", "sqlite"];
const FORMS: &[&str] = &["table", "column", "trigger"];

/// What is to be made, in the order in which it is made.
pub(crate) struct SqlPlan {
    dialect: Dialect,
    parts: Vec<Part>,
    down_only: bool,
}

struct Part {
    title: String,
    migration: Migration,
}

impl SqlPlan {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`], naming the argument.
    pub(super) fn new(args: &SqlArgs) -> Result<Self, Failure> {
        let dialect =
            Dialect::parse(&args.dialect).ok_or_else(|| one_of("--dialect", &args.dialect, DIALECTS))?;
        if !FORMS.contains(&args.form.as_str()) {
            return Err(one_of("--form", &args.form, FORMS));
        }
        if args.form != "trigger" && (args.lock.is_some() || args.row_locks.is_some()) {
            return Err(Failure::Usage("--lock and --row-locks go with --form trigger".into()));
        }
        let mut parts = Vec::new();
        if args.form != "column" && !args.no_base {
            let migration = ddl::base(dialect, args.schema.as_deref()).map_err(usage)?;
            parts.push(Part {
                title: "once for each database: where fences keep what they know".into(),
                migration,
            });
        }
        parts.extend(guard(dialect, args)?);
        Ok(Self { dialect, parts, down_only: args.down })
    }
}

/// The part that is about one table; the fence table is for all of them and needs none.
fn guard(dialect: Dialect, args: &SqlArgs) -> Result<Option<Part>, Failure> {
    if args.form == "table" {
        return Ok(None);
    }
    let missing = || Failure::Usage(format!("--form {} needs --table", args.form));
    let table = TableName::parse(args.table.as_deref().ok_or_else(missing)?).map_err(usage)?;
    if args.form == "column" {
        let migration = ddl::token_columns(dialect, &table);
        return Ok(Some(Part { title: format!("the token columns of {table}"), migration }));
    }
    let (guarded, by) = guarded(args, &table)?;
    let migration = ddl::trigger(dialect, args.schema.as_deref(), &table, &guarded).map_err(usage)?;
    Ok(Some(Part { title: format!("no SQL writes {table} without the token of {by}"), migration }))
}

fn guarded(args: &SqlArgs, table: &TableName) -> Result<(Guarded, String), Failure> {
    if let (Some(prefix), Some(key)) = (&args.row_locks, &args.key_column) {
        let by = format!("the lock {prefix} followed by the row's {key}");
        return Ok((Guarded::Rows { prefix: resource_name(prefix)?, key: key.clone() }, by));
    }
    let lock = args.lock.clone().unwrap_or_else(|| table.to_string());
    Ok((Guarded::Table { guard: resource_name(&lock)? }, format!("the lock {lock}")))
}

/// Prints it.
pub(super) fn sql(out: &mut Out, plan: &SqlPlan) -> Result<Exit, Failure> {
    let backwards = || plan.parts.iter().rev();
    if out.format() == Format::Json {
        let up: Vec<&String> = plan.parts.iter().flat_map(|part| part.migration.up()).collect();
        let down: Vec<&String> = backwards().flat_map(|part| part.migration.down()).collect();
        out.json(&json!({ "dialect": plan.dialect.as_str(), "up": up, "down": down }))?;
        return Ok(Exit::Done);
    }
    if plan.down_only {
        backwards().try_for_each(|part| out.text(&part.migration.down_script()))?;
        return Ok(Exit::Done);
    }
    for part in &plan.parts {
        out.line(&format!("-- {}", part.title))?;
        out.text(&part.migration.up_script())?;
    }
    out.line("-- the way back (--down prints it alone):")?;
    for line in backwards().map(|part| part.migration.down_script()).collect::<String>().lines() {
        out.line(format!("-- {line}").trim_end())?;
    }
    Ok(Exit::Done)
}
