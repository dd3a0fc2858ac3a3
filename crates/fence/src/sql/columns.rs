//! The token in columns of the written row itself.

#[cfg(feature = "_sql")]
use super::form::Form;
#[cfg(feature = "_sql")]
use super::{Dialect, TableName};

/// Which lock guards the row; NULL until the first fenced write.
pub const GUARD_COLUMN: &str = "fence_guard";
/// The highest token that has written the row; 0 before the first.
pub const TOKEN_COLUMN: &str = "fence_token";
/// How many writes of it there were.
pub const WRITES_COLUMN: &str = "fence_writes";

/// How the values of ours stand in a statement: `$4`, `?4`, `:fence_guard`.
#[cfg(feature = "_sql")]
#[derive(Debug)]
pub(crate) struct Marks {
    pub guard: String,
    pub token: String,
}

/// The user's own statement, in the parts between which ours stand.
#[cfg(feature = "_sql")]
#[derive(Debug)]
pub(crate) struct ColumnUpdate<'a> {
    pub dialect: Dialect,
    pub table: &'a TableName,
    pub set: &'a str,
    pub key: &'a str,
}

#[cfg(feature = "_sql")]
impl ColumnUpdate<'_> {
    /// Check, advance and write as one statement.
    pub(crate) fn fenced(&self, form: Form, marks: &Marks) -> String {
        let (table, Self { set, key, .. }, Marks { guard, token }) =
            (self.table.quoted(self.dialect), self, marks);
        let condition = form.condition(TOKEN_COLUMN, WRITES_COLUMN, token);
        // The count stands before the token: MariaDB assigns from left to right, and the count needs the old token.
        format!(
            "UPDATE {table} SET {set}, \
             {WRITES_COLUMN} = CASE WHEN {TOKEN_COLUMN} = {token} THEN {WRITES_COLUMN} + 1 ELSE 1 END, \
             {TOKEN_COLUMN} = {token}, {GUARD_COLUMN} = {guard} \
             WHERE ({key}) AND ({GUARD_COLUMN} IS NULL OR {GUARD_COLUMN} = {guard}) AND {condition}"
        )
    }

    /// The claim of a row: raises its token and writes nothing else.
    pub(crate) fn claimed(&self, marks: &Marks) -> String {
        let (table, Self { key, .. }, Marks { guard, token }) =
            (self.table.quoted(self.dialect), self, marks);
        format!(
            "UPDATE {table} SET {WRITES_COLUMN} = 0, {TOKEN_COLUMN} = {token}, {GUARD_COLUMN} = {guard} \
             WHERE ({key}) AND ({GUARD_COLUMN} IS NULL OR {GUARD_COLUMN} = {guard}) AND {TOKEN_COLUMN} < {token}"
        )
    }

    /// The write alone, after a check that holds the row.
    pub(crate) fn plain(&self) -> String {
        format!("UPDATE {} SET {} WHERE ({})", self.table.quoted(self.dialect), self.set, self.key)
    }

    /// What the row keeps, held until the transaction ends.
    pub(crate) fn read(&self) -> String {
        let (table, key) = (self.table.quoted(self.dialect), self.key);
        let hold = if self.dialect == Dialect::Sqlite { "" } else { " FOR UPDATE" };
        format!("SELECT {GUARD_COLUMN}, {TOKEN_COLUMN}, {WRITES_COLUMN} FROM {table} WHERE ({key}){hold}")
    }
}
