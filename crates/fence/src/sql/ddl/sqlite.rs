//! SQLite.
//!
//! SQLite has no session variables, so resource and token stand in a table of one row, put there and taken away in the
//! same `BEGIN IMMEDIATE` transaction as the write: nobody else sees the row, and a rollback removes it.
//!
//! What it cannot: a program that commits without taking the row away leaves its token to the next writer; a program
//! that can write the file can drop the triggers.

use super::super::{Dialect, FENCE_TABLE, TableName};
use super::{Guarded, fence_columns, fence_name};

const D: Dialect = Dialect::Sqlite;

pub(super) fn base() -> (Vec<String>, Vec<String>) {
    let most = leasehold_types::limits::TOKEN_MAX;
    let table = format!("CREATE TABLE {FENCE_TABLE} (\n{}\n) WITHOUT ROWID", fence_columns("TEXT"));
    let session = format!(
        "CREATE TABLE leasehold_session (
    one      INTEGER PRIMARY KEY CHECK (one = 1), -- there is one row at most
    resource TEXT NOT NULL,
    token    BIGINT NOT NULL CHECK (typeof(token) = 'integer' AND token BETWEEN 1 AND {most}),
    mode     TEXT NOT NULL DEFAULT 'exclusive' CHECK (mode IN ('exclusive', 'shared'))
)"
    );
    (
        vec![table, session],
        vec!["DROP TABLE leasehold_session".to_owned(), format!("DROP TABLE {FENCE_TABLE}")],
    )
}

pub(super) fn trigger(table: &TableName, guarded: &Guarded) -> (Vec<String>, Vec<String>) {
    let name = |event: &str| table.sibling(D, &format!("{}_fence_{event}", table.name()));
    let create = |event: &str| {
        let (name, on) = (name(event), D.quote(table.name()));
        format!("CREATE TRIGGER {name} BEFORE {event} ON {on} BEGIN\n{}END", body(table, guarded, event))
    };
    let events = ["INSERT", "UPDATE", "DELETE"];
    (events.map(create).into(), events.map(|event| format!("DROP TRIGGER {}", name(event))).into())
}

fn body(table: &TableName, guarded: &Guarded, event: &str) -> String {
    match guarded {
        Guarded::Table { guard } => check(&D.literal(&fence_name(table)), &D.literal(guard.as_str())),
        Guarded::Rows { prefix, key } => {
            let lock =
                |version: &str| format!("({} || {version}.{})", D.literal(prefix.as_str()), D.quote(key));
            let check = |version: &str| check(&lock(version), &lock(version));
            match event {
                "INSERT" => check("NEW"),
                "DELETE" => check("OLD"),
                _ => check("OLD") + &check("NEW"),
            }
        }
    }
}

/// Messages are constants: SQLite before 3.47 takes no others.
fn check(fence: &str, guard: &str) -> String {
    let here = format!("f.name = {fence} AND f.permit = -1");
    format!(
        "    SELECT CASE
        WHEN NOT EXISTS (SELECT 1 FROM leasehold_session)
            THEN RAISE(ABORT, 'leasehold: missing token: put resource and token into leasehold_session first')
        WHEN (SELECT s.resource FROM leasehold_session s) IS NOT {guard}
            OR EXISTS (SELECT 1 FROM {FENCE_TABLE} f, leasehold_session s WHERE {here} AND f.guard IS NOT {guard})
            THEN RAISE(ABORT, 'leasehold: wrong scope: another lock guards this')
        WHEN EXISTS (SELECT 1 FROM {FENCE_TABLE} f, leasehold_session s WHERE {here} AND f.token > s.token)
            THEN RAISE(ABORT, 'leasehold: stale token: a newer grant has been here')
    END;
    INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes)
        SELECT {fence}, -1, {guard}, s.token, 1 FROM leasehold_session s WHERE s.mode <> 'shared'
        ON CONFLICT (name, permit) DO UPDATE SET token = excluded.token, writes = 1 WHERE excluded.token > token;
"
    )
}
