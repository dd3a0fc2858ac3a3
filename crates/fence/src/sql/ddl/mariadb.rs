//! MariaDB and MySQL.
//!
//! What the text below takes care of:
//! - Names are bytes (VARBINARY): no collation makes two of them equal.
//! - The row of the fence is read with a lock, which reads the newest row at every isolation level; a plain SELECT at
//!   REPEATABLE READ would read the transaction's old snapshot.
//! - A row that is not there yet is made first, by a statement that takes the write lock at once.
//!
//! What it cannot: `TRUNCATE`, `DROP` and the cascades of foreign keys fire no trigger there.

use super::super::{Dialect, FENCE_TABLE, TableName};
use super::{Guarded, fence_columns, fence_name};

const D: Dialect = Dialect::Mariadb;

pub(super) fn base() -> (Vec<String>, Vec<String>) {
    let table =
        format!("CREATE TABLE {FENCE_TABLE} (\n{}\n) ENGINE = InnoDB", fence_columns("VARBINARY(512)"));
    let down = vec!["DROP PROCEDURE leasehold_admit".to_owned(), format!("DROP TABLE {FENCE_TABLE}")];
    (vec![table, admit()], down)
}

/// The check, with resource and token from the session's variables.
fn admit() -> String {
    let most = leasehold_types::limits::TOKEN_MAX;
    format!(
        "CREATE PROCEDURE leasehold_admit(IN fence VARBINARY(512), IN expected VARBINARY(512))
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE resource VARBINARY(512) DEFAULT CAST(CONVERT(@leasehold_resource USING utf8mb4) AS BINARY);
    DECLARE given VARCHAR(64) DEFAULT CONVERT(@leasehold_token USING utf8mb4);
    DECLARE shared BOOLEAN DEFAULT COALESCE(CONVERT(@leasehold_mode USING utf8mb4), '') = 'shared';
    DECLARE presented BIGINT;
    DECLARE kept_guard VARBINARY(512);
    DECLARE kept_token BIGINT;
    DECLARE why VARCHAR(128);
    IF resource IS NULL OR given IS NULL OR NOT given REGEXP '^[0-9]{{1,16}}$' THEN
        SIGNAL SQLSTATE '45001'
            SET MESSAGE_TEXT = 'leasehold: missing token: set @leasehold_resource and @leasehold_token first';
    END IF;
    SET presented = CAST(given AS UNSIGNED);
    IF presented NOT BETWEEN 1 AND {most} THEN
        SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'leasehold: missing token: the number is no fencing token';
    END IF;
    IF resource <> expected THEN
        SIGNAL SQLSTATE '45003' SET MESSAGE_TEXT = 'leasehold: wrong scope: another lock guards this table';
    END IF;
    INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes) VALUES (fence, -1, expected, 0, 0)
        ON DUPLICATE KEY UPDATE writes = writes;
    SELECT f.guard, f.token INTO kept_guard, kept_token FROM {FENCE_TABLE} f
        WHERE f.name = fence AND f.permit = -1 FOR UPDATE;
    IF kept_guard <> expected THEN
        SIGNAL SQLSTATE '45003' SET MESSAGE_TEXT = 'leasehold: wrong scope: the fence is kept for another lock';
    END IF;
    IF presented < kept_token THEN
        SET why = CONCAT('leasehold: stale token ', presented, ': the highest seen is ', kept_token);
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = why;
    END IF;
    IF presented > kept_token AND NOT shared THEN
        UPDATE {FENCE_TABLE} f SET f.token = presented, f.writes = 1 WHERE f.name = fence AND f.permit = -1;
    END IF;
END"
    )
}

pub(super) fn trigger(table: &TableName, guarded: &Guarded) -> (Vec<String>, Vec<String>) {
    let name = |event: &str| table.sibling(D, &format!("{}_fence_{event}", table.name()));
    let create = |event: &str| {
        let (name, on) = (name(event), table.quoted(D));
        format!("CREATE TRIGGER {name} BEFORE {event} ON {on} FOR EACH ROW {}", body(table, guarded, event))
    };
    let events = ["INSERT", "UPDATE", "DELETE"];
    (events.map(create).into(), events.map(|event| format!("DROP TRIGGER {}", name(event))).into())
}

fn body(table: &TableName, guarded: &Guarded, event: &str) -> String {
    let call =
        |fence: &str, guard: &str| format!("CALL {}({fence}, {guard})", table.sibling(D, "leasehold_admit"));
    match guarded {
        Guarded::Table { guard } => call(&D.literal(&fence_name(table)), &D.literal(guard.as_str())),
        Guarded::Rows { prefix, key } => {
            let lock =
                |version: &str| format!("CONCAT({}, {version}.{})", D.literal(prefix.as_str()), D.quote(key));
            let check = |version: &str| call(&lock(version), &lock(version));
            match event {
                "INSERT" => check("NEW"),
                "DELETE" => check("OLD"),
                _ => format!(
                    "BEGIN\n    {};\n    IF NOT ({} <=> {}) THEN\n        {};\n    END IF;\nEND",
                    check("OLD"),
                    lock("OLD"),
                    lock("NEW"),
                    check("NEW")
                ),
            }
        }
    }
}
