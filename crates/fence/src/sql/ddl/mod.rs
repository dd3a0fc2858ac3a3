//! Migrations as text: for people to review and for migration tools to run.
//!
//! Pure functions: the same arguments give the same text.

mod mariadb;
mod postgres;
mod sqlite;

use leasehold_types::ResourceName;

use super::columns::{GUARD_COLUMN, TOKEN_COLUMN, WRITES_COLUMN};
use super::name::{self, InvalidIdentifier, TableName};
use super::{DOCUMENT_TABLE, Dialect, FLIGHT_TABLE, LEDGER_TABLE};

/// Statements that make something, and those that take it away again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migration {
    dialect: Dialect,
    up: Vec<String>,
    down: Vec<String>,
}

impl Migration {
    /// The statements that make it, in order, each without a final semicolon.
    pub fn up(&self) -> &[String] {
        &self.up
    }

    /// The statements that take it away, in order, each without a final semicolon.
    pub fn down(&self) -> &[String] {
        &self.down
    }

    /// The statements that make it, as a script for `psql`, `mariadb` or `sqlite3`.
    pub fn up_script(&self) -> String {
        self.script(&self.up)
    }

    /// The statements that take it away, as a script for `psql`, `mariadb` or `sqlite3`.
    pub fn down_script(&self) -> String {
        self.script(&self.down)
    }

    fn script(&self, statements: &[String]) -> String {
        let one = |statement: &String| match self.dialect {
            Dialect::Mariadb if statement.contains(';') => {
                format!("DELIMITER //\n{statement}//\nDELIMITER ;\n")
            }
            _ => format!("{statement};\n"),
        };
        statements.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

/// What a trigger guards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guarded {
    /// The whole table, by one lock.
    Table {
        /// The lock.
        guard: ResourceName,
    },
    /// Each row, by a lock of its own: the prefix, followed by the value of the key column as text.
    Rows {
        /// What the names of the locks begin with.
        prefix: ResourceName,
        /// The key column: never NULL, and unique for the fence to mean anything.
        key: String,
    },
}

/// The table with the rows of all fences, and what the triggers need: once for each database.
///
/// `schema` is where it is made on PostgreSQL; the programs' `search_path` must have it. The other dialects have no
/// use for it.
///
/// # Errors
/// A schema whose name cannot be one.
pub fn base(dialect: Dialect, schema: Option<&str>) -> Result<Migration, InvalidIdentifier> {
    let schema = name::column(schema.unwrap_or("public"))?;
    let (up, down) = match dialect {
        Dialect::Postgres => postgres::base(&schema),
        Dialect::Mariadb => mariadb::base(),
        Dialect::Sqlite => sqlite::base(),
    };
    Ok(Migration { dialect, up, down })
}

/// The token columns of a table.
pub fn token_columns(dialect: Dialect, table: &TableName) -> Migration {
    let (quoted, text) =
        (table.quoted(dialect), if dialect == Dialect::Mariadb { "VARBINARY(512)" } else { "TEXT" });
    let columns = [
        format!("{GUARD_COLUMN} {text}"),
        format!("{TOKEN_COLUMN} BIGINT NOT NULL DEFAULT 0"),
        format!("{WRITES_COLUMN} BIGINT NOT NULL DEFAULT 0"),
    ];
    let up = columns.map(|column| format!("ALTER TABLE {quoted} ADD COLUMN {column}"));
    let names = [WRITES_COLUMN, TOKEN_COLUMN, GUARD_COLUMN];
    let down = names.map(|column| format!("ALTER TABLE {quoted} DROP COLUMN {column}"));
    Migration { dialect, up: up.into(), down: down.into() }
}

/// The table with the side effects that holders have begun and ended; see [`effects`](crate::effects).
pub fn ledger(dialect: Dialect) -> Migration {
    let (text, key, engine) = match dialect {
        Dialect::Mariadb => ("VARBINARY(512)", "VARBINARY(128)", " ENGINE = InnoDB"),
        Dialect::Postgres | Dialect::Sqlite => ("TEXT", "TEXT", ""),
    };
    let up = format!(
        "CREATE TABLE {LEDGER_TABLE} (\n\
         \x20   resource  {text} NOT NULL, -- the lock under which it was begun\n\
         \x20   operation {key} NOT NULL, -- the same for each attempt at it\n\
         \x20   token     BIGINT NOT NULL, -- the grant that last began or ended it\n\
         \x20   outcome   TEXT, -- NULL until it has ended\n\
         \x20   PRIMARY KEY (resource, operation)\n){engine}"
    );
    Migration { dialect, up: vec![up], down: vec![format!("DROP TABLE {LEDGER_TABLE}")] }
}

/// The table with small documents that processes share, such as the stages of a roll-out.
pub fn documents(dialect: Dialect) -> Migration {
    let (text, bytes, engine) = match dialect {
        Dialect::Mariadb => ("VARBINARY(512)", "LONGBLOB", " ENGINE = InnoDB"),
        Dialect::Postgres => ("TEXT", "BYTEA", ""),
        Dialect::Sqlite => ("TEXT", "BLOB", ""),
    };
    let up = format!(
        "CREATE TABLE {DOCUMENT_TABLE} (name {text} NOT NULL PRIMARY KEY, document {bytes} NOT NULL){engine}"
    );
    Migration { dialect, up: vec![up], down: vec![format!("DROP TABLE {DOCUMENT_TABLE}")] }
}

/// The table with the requests that a reverse proxy has in flight; it makes the table itself where it may.
pub fn flights(dialect: Dialect) -> Migration {
    let (text, engine) = match dialect {
        Dialect::Mariadb => ("VARBINARY(512)", " ENGINE = InnoDB"),
        Dialect::Postgres | Dialect::Sqlite => ("TEXT", ""),
    };
    let up = format!(
        "CREATE TABLE {FLIGHT_TABLE} (\n\
         \x20   name   {text} NOT NULL, -- which fence\n\
         \x20   permit BIGINT NOT NULL, -- which permit of a semaphore; -1: the whole\n\
         \x20   token  BIGINT NOT NULL, -- what the request was admitted with\n\
         \x20   flight VARCHAR(64) NOT NULL, -- which request\n\
         \x20   beat   BIGINT NOT NULL, -- moves while the proxy that sent it lives\n\
         \x20   PRIMARY KEY (name, permit, token, flight)\n){engine}"
    );
    let index = format!("CREATE INDEX {FLIGHT_TABLE}_flight ON {FLIGHT_TABLE} (flight)");
    Migration { dialect, up: vec![up, index], down: vec![format!("DROP TABLE {FLIGHT_TABLE}")] }
}

/// Triggers that let no SQL write the table without the token of the lock that guards it. Needs [`base`].
///
/// They keep one maximum for exclusive grants, monotonic. Shared grants are checked and never advance it. Permits,
/// steps and the strict policy are for the fence table.
///
/// # Errors
/// A key column or schema whose name cannot be one.
pub fn trigger(
    dialect: Dialect,
    schema: Option<&str>,
    table: &TableName,
    guarded: &Guarded,
) -> Result<Migration, InvalidIdentifier> {
    let schema = name::column(schema.unwrap_or("public"))?;
    if let Guarded::Rows { key, .. } = guarded {
        name::column(key)?;
    }
    let (up, down) = match dialect {
        Dialect::Postgres => postgres::trigger(&schema, table, guarded),
        Dialect::Mariadb => mariadb::trigger(table, guarded),
        Dialect::Sqlite => sqlite::trigger(table, guarded),
    };
    Ok(Migration { dialect, up, down })
}

/// The columns of the fence table, alike but for the type of a name.
fn fence_columns(text: &str) -> String {
    let most = leasehold_types::limits::TOKEN_MAX;
    format!(
        "    name   {text} NOT NULL, -- which fence\n\
         \x20   permit BIGINT NOT NULL, -- which permit of a semaphore; -1: the whole\n\
         \x20   guard  {text} NOT NULL, -- the lock whose tokens count here\n\
         \x20   token  BIGINT NOT NULL CHECK (token BETWEEN 0 AND {most}), -- the highest admitted or claimed; 0: none yet\n\
         \x20   writes BIGINT NOT NULL CHECK (writes >= 0), -- admitted writes of that token\n\
         \x20   PRIMARY KEY (name, permit)"
    )
}

/// How a fence of a whole table is called: as the table, so that two tables under one lock have a maximum each.
fn fence_name(table: &TableName) -> String {
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::FENCE_TABLE;

    #[test]
    fn every_migration_has_its_way_back_and_is_repeatable_text() {
        let table = TableName::parse("accounts").unwrap();
        let lock = ResourceName::new("it's/accounts").unwrap();
        for dialect in Dialect::ALL {
            let whole = Guarded::Table { guard: lock.clone() };
            let rows = Guarded::Rows { prefix: lock.clone(), key: "id".into() };
            let trigger = |guarded| trigger(dialect, None, &table, guarded).unwrap();
            for migration in [
                base(dialect, None).unwrap(),
                token_columns(dialect, &table),
                trigger(&whole),
                trigger(&rows),
            ] {
                assert!(!migration.up().is_empty() && !migration.down().is_empty());
                let unquoted = migration.up_script().contains("it's");
                assert!(!unquoted, "a quote in a name must be doubled: {}", migration.up_script());
            }
            assert_eq!(trigger(&whole), trigger(&whole));
        }
    }

    #[test]
    fn only_mariadb_needs_another_delimiter() {
        for dialect in Dialect::ALL {
            let script = base(dialect, None).unwrap().up_script();
            assert_eq!(script.contains("DELIMITER"), dialect == Dialect::Mariadb, "{dialect:?}");
            assert!(script.contains(FENCE_TABLE));
        }
    }
}
