//! What the SQL databases share: the table of the drill's own, and the statement for the user's.

use leasehold_fence::sql::{Dialect, TableName, ddl};

use super::{Place, unusable};
use crate::failure::Failure;

/// The one row of the drill's own table.
pub(super) const KEY: i32 = 1;
/// What stands there before anybody has written.
const BEFORE: &str = "nobody has written yet";

/// What is written, and how.
pub(super) enum Target {
    /// A table made for the drill, with token columns.
    Own(TableName),
    /// The user's own, behind the user's own trigger.
    Users {
        /// Its name.
        table: TableName,
        /// What the user said to run.
        statement: Option<String>,
    },
}

impl Target {
    pub(super) fn of(place: &Place) -> Result<Self, Failure> {
        let parse = |name: &str| TableName::parse(name).map_err(unusable("--table"));
        match &place.table {
            Some(table) => Ok(Self::Users { table: parse(table)?, statement: place.statement.clone() }),
            None => Ok(Self::Own(parse(&place.own_name())?)),
        }
    }

    /// The statements that make the drill's own table; none for the user's.
    pub(super) fn make(&self, dialect: Dialect) -> Vec<String> {
        let Self::Own(table) = self else { return Vec::new() };
        let quoted = table.quoted(dialect);
        let mut statements =
            vec![format!("CREATE TABLE {quoted} (id INTEGER PRIMARY KEY, note VARCHAR(200))")];
        statements.extend(ddl::token_columns(dialect, table).up().iter().cloned());
        statements.push(format!("INSERT INTO {quoted} (id, note) VALUES ({KEY}, '{BEFORE}')"));
        statements
    }

    /// The statement that removes it.
    pub(super) fn remove(&self, dialect: Dialect) -> Option<String> {
        let Self::Own(table) = self else { return None };
        Some(format!("DROP TABLE IF EXISTS {}", table.quoted(dialect)))
    }

    /// The statement that reads the note.
    pub(super) fn read(&self, dialect: Dialect) -> Option<String> {
        let Self::Own(table) = self else { return None };
        Some(format!("SELECT note FROM {} WHERE id = {KEY}", table.quoted(dialect)))
    }

    /// The statement that writes without asking the fence; the text is its one parameter.
    pub(super) fn plain(table: &TableName, dialect: Dialect, parameter: &str) -> String {
        format!("UPDATE {} SET note = {parameter} WHERE id = {KEY}", table.quoted(dialect))
    }
}

/// A write to the user's table that changes nothing: one column of one row is set to what it is.
pub(super) fn no_change(table: &TableName, dialect: Dialect, column: &str) -> String {
    let (table, column) = (table.quoted(dialect), dialect.quote(column));
    let one = match dialect {
        Dialect::Postgres => format!("WHERE ctid = (SELECT ctid FROM {table} LIMIT 1)"),
        Dialect::Mariadb => "LIMIT 1".to_owned(),
        Dialect::Sqlite => format!("WHERE rowid = (SELECT rowid FROM {table} LIMIT 1)"),
    };
    format!("UPDATE {table} SET {column} = {column} {one}")
}

/// A statement that reached no row says nothing about a fence.
pub(super) fn wrote_a_row(table: &TableName, rows: u64) -> Result<(), Failure> {
    match rows {
        0 => Err(Failure::Fence(format!(
            "the write to {table} reached no row, which shows nothing; name a statement that does with --write"
        ))),
        _ => Ok(()),
    }
}

/// There is no such table, as far as the user may see.
pub(super) fn no_table(table: &TableName) -> Failure {
    Failure::Fence(format!("there is no table {table}, or no column of it that this user may see"))
}
