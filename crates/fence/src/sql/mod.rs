//! What the SQL fences share: names, statements in parts, and the DDL as text.
//!
//! There are three ways to fence a table, alike on PostgreSQL, MariaDB/MySQL and SQLite:
//!
//! | way | what keeps the maximum | what it stops |
//! |---|---|---|
//! | fence table | a row of `leasehold_fence`, advanced in the user's own transaction | every write path that takes `&Admitted` |
//! | token columns | three columns of the written row itself, checked in the user's own statement | that statement |
//! | trigger | a row of `leasehold_fence`, advanced by the trigger | any SQL on the table, from whatever program |
//!
//! This module needs no driver: [`ddl`] prints migrations for people to review.

mod columns;
pub mod ddl;
#[cfg(any(feature = "_sql", test))]
mod form;
mod name;
#[cfg(any(feature = "postgres", feature = "sqlx"))]
pub(crate) mod postgres;

#[cfg(feature = "_sql")]
pub(crate) use columns::{ColumnUpdate, Marks};
pub use columns::{GUARD_COLUMN, TOKEN_COLUMN, WRITES_COLUMN};
#[cfg(feature = "_sql")]
pub(crate) use form::Form;
pub use name::{InvalidIdentifier, TableName};

/// The table with the rows of all fences in a database.
pub const FENCE_TABLE: &str = "leasehold_fence";

/// The table with the side effects that holders have begun and ended.
pub const LEDGER_TABLE: &str = "leasehold_ledger";

/// The table with the requests that a reverse proxy has in flight.
pub const FLIGHT_TABLE: &str = "leasehold_flight";

/// The table with small documents that processes share.
pub const DOCUMENT_TABLE: &str = "leasehold_document";

/// A way to speak SQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// PostgreSQL 11 and later.
    Postgres,
    /// MariaDB 10.5 and later, MySQL 8.0.16 and later; InnoDB tables.
    Mariadb,
    /// SQLite 3.24 and later.
    Sqlite,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Mariadb, Self::Sqlite];

    /// The word for it on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Sqlite => "sqlite",
        }
    }

    /// The dialect of this word; `mysql` and `postgresql` are understood too.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mariadb" | "mysql" => Some(Self::Mariadb),
            "sqlite" => Some(Self::Sqlite),
            _ => None,
        }
    }

    /// The name as it stands in a statement.
    pub fn quote(self, name: &str) -> String {
        let mark = if self == Self::Mariadb { '`' } else { '"' };
        let doubled = name.replace(mark, &format!("{mark}{mark}"));
        format!("{mark}{doubled}{mark}")
    }

    /// The text as a literal.
    pub fn literal(self, text: &str) -> String {
        let doubled = text.replace('\'', "''");
        match self {
            // In the default mode a backslash is an escape there.
            Self::Mariadb => format!("'{}'", doubled.replace('\\', "\\\\")),
            Self::Postgres | Self::Sqlite => format!("'{doubled}'"),
        }
    }
}

/// What a fence table keeps, or why this can be no row of one.
#[cfg(feature = "_sql")]
pub(crate) fn row<E>(guard: &str, token: i64, writes: i64) -> Result<crate::Row, crate::FenceError<E>> {
    let impossible =
        || crate::FenceError::Corrupt(format!("guard {guard:?}, token {token}, writes {writes}"));
    crate::Row::from_numbers(guard, token, writes).ok_or_else(impossible)
}

/// What the token columns of a row keep: nothing before the first fenced write.
#[cfg(feature = "_sql")]
pub(crate) fn column_row<E>(
    guard: Option<&str>,
    token: i64,
    writes: i64,
) -> Result<Option<crate::Row>, crate::FenceError<E>> {
    match (guard, token) {
        (None, 0) => Ok(None),
        (None, _) => Err(crate::FenceError::Corrupt(format!("token {token} of no lock"))),
        (Some(guard), _) => row(guard, token, writes).map(Some),
    }
}

/// What token columns cannot fence: they keep one maximum, not one for each permit.
#[cfg(feature = "_sql")]
pub(crate) fn check_span<E>(fence: &crate::Fence, grant: &crate::Grant) -> Result<(), crate::FenceError<E>> {
    match fence.span() {
        crate::Span::Whole => Ok(()),
        crate::Span::EachPermit => {
            let (presented, guard) = (grant.resource().clone(), fence.guard().clone());
            Err(crate::FenceError::Rejected(crate::Rejection::WrongScope { presented, guard }))
        }
    }
}
