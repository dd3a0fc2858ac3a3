//! PostgreSQL.
//!
//! What the text below takes care of:
//! - The trigger is ENABLE ALWAYS: `session_replication_role = replica` does not switch it off.
//! - `ON CONFLICT DO UPDATE`, `COPY`, `MERGE` and `TRUNCATE` all fire it.
//! - It is the last BEFORE trigger by name: another one cannot change the key after the check.
//! - The row of the fence is read with a lock. At REPEATABLE READ and above a row that has moved since the snapshot is
//!   error 40001, not an old answer.
//! - The functions name their schema: a temporary table of the same name fools nobody.

use super::super::{Dialect, FENCE_TABLE, TableName};
use super::{Guarded, fence_columns, fence_name};

const D: Dialect = Dialect::Postgres;
/// BEFORE triggers fire in the order of their names.
const TRIGGER: &str = "zz_leasehold_fence";
const TRUNCATE: &str = "zz_leasehold_truncate";

pub(super) fn base(schema: &str) -> (Vec<String>, Vec<String>) {
    let schema = D.quote(schema);
    // Half-empty pages keep an update of the hottest rows on their page.
    let table =
        format!("CREATE TABLE {schema}.{FENCE_TABLE} (\n{}\n) WITH (fillfactor = 50)", fence_columns("TEXT"));
    let up = vec![table, admit(&schema), guard_table(&schema), guard_rows(&schema), refuse_truncate(&schema)];
    let down = vec![
        format!("DROP FUNCTION {schema}.leasehold_refuse_truncate()"),
        format!("DROP FUNCTION {schema}.leasehold_guard_rows()"),
        format!("DROP FUNCTION {schema}.leasehold_guard_table()"),
        format!("DROP FUNCTION {schema}.leasehold_admit(TEXT, TEXT)"),
        format!("DROP TABLE {schema}.{FENCE_TABLE}"),
    ];
    (up, down)
}

/// The check, with resource and token from the session. Runs as its owner: who writes the guarded table needs no right
/// on the fence table.
fn admit(schema: &str) -> String {
    let most = leasehold_types::limits::TOKEN_MAX;
    format!(
        "CREATE FUNCTION {schema}.leasehold_admit(fence TEXT, expected TEXT) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $leasehold$
DECLARE
    resource  TEXT := nullif(current_setting('leasehold.resource', true), '');
    given     TEXT := nullif(current_setting('leasehold.token', true), '');
    shared    BOOLEAN := coalesce(current_setting('leasehold.mode', true), '') = 'shared';
    presented BIGINT;
    kept      RECORD;
BEGIN
    IF given IS NULL OR resource IS NULL THEN
        RAISE EXCEPTION 'leasehold: missing token: fence % admits no write without one', fence
            USING ERRCODE = 'LH001',
                  HINT = 'SET LOCAL leasehold.resource and leasehold.token in the same transaction.';
    END IF;
    IF given !~ '^[0-9]{{1,16}}$' THEN
        RAISE EXCEPTION 'leasehold: missing token: % is no fencing token', quote_literal(given)
            USING ERRCODE = 'LH001';
    END IF;
    presented := given::BIGINT;
    IF presented NOT BETWEEN 1 AND {most} THEN
        RAISE EXCEPTION 'leasehold: missing token: % is no fencing token', presented USING ERRCODE = 'LH001';
    END IF;
    INSERT INTO {schema}.{FENCE_TABLE} (name, permit, guard, token, writes)
        SELECT fence, -1, expected, 0, 0 WHERE resource = expected
        ON CONFLICT (name, permit) DO NOTHING;
    IF shared THEN
        SELECT f.guard, f.token INTO kept FROM {schema}.{FENCE_TABLE} f
            WHERE f.name = fence AND f.permit = -1 FOR SHARE;
    ELSE
        SELECT f.guard, f.token INTO kept FROM {schema}.{FENCE_TABLE} f
            WHERE f.name = fence AND f.permit = -1 FOR UPDATE;
    END IF;
    IF resource <> expected OR kept.guard <> expected THEN
        RAISE EXCEPTION 'leasehold: wrong scope: a token of % does not count here, % guards fence %',
            resource, coalesce(kept.guard, expected), fence USING ERRCODE = 'LH003';
    END IF;
    IF presented < kept.token THEN
        RAISE EXCEPTION 'leasehold: stale token %: the highest seen by fence % is %', presented, fence, kept.token
            USING ERRCODE = 'LH002';
    END IF;
    IF presented > kept.token AND NOT shared THEN
        UPDATE {schema}.{FENCE_TABLE} f SET token = presented, writes = 1
            WHERE f.name = fence AND f.permit = -1;
    END IF;
END
$leasehold$"
    )
}

fn guard_table(schema: &str) -> String {
    format!(
        "CREATE FUNCTION {schema}.leasehold_guard_table() RETURNS trigger LANGUAGE plpgsql AS $leasehold$
BEGIN
    PERFORM {schema}.leasehold_admit(TG_ARGV[0], TG_ARGV[1]);
    RETURN NULL;
END
$leasehold$"
    )
}

fn guard_rows(schema: &str) -> String {
    format!(
        "CREATE FUNCTION {schema}.leasehold_guard_rows() RETURNS trigger LANGUAGE plpgsql AS $leasehold$
DECLARE
    old_key TEXT;
    new_key TEXT;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        old_key := TG_ARGV[0] || (to_jsonb(OLD) ->> TG_ARGV[1]);
        PERFORM {schema}.leasehold_admit(old_key, old_key);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    new_key := TG_ARGV[0] || (to_jsonb(NEW) ->> TG_ARGV[1]);
    IF new_key IS NULL THEN
        RAISE EXCEPTION 'leasehold: wrong scope: a row without a key has no lock' USING ERRCODE = 'LH003';
    END IF;
    IF new_key IS DISTINCT FROM old_key THEN
        PERFORM {schema}.leasehold_admit(new_key, new_key);
    END IF;
    RETURN NEW;
END
$leasehold$"
    )
}

fn refuse_truncate(schema: &str) -> String {
    format!(
        "CREATE FUNCTION {schema}.leasehold_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $leasehold$
BEGIN
    RAISE EXCEPTION 'leasehold: wrong scope: TRUNCATE of % would write rows of many locks', TG_TABLE_NAME
        USING ERRCODE = 'LH003';
END
$leasehold$"
    )
}

pub(super) fn trigger(schema: &str, table: &TableName, guarded: &Guarded) -> (Vec<String>, Vec<String>) {
    let (schema, on) = (D.quote(schema), table.quoted(D));
    let create = |name: &str, events: &str, each: &str, call: String| {
        [
            format!(
                "CREATE TRIGGER {name} BEFORE {events} ON {on} FOR EACH {each}\n    EXECUTE FUNCTION {schema}.{call}"
            ),
            format!("ALTER TABLE {on} ENABLE ALWAYS TRIGGER {name}"),
        ]
    };
    let drop = |name: &str| format!("DROP TRIGGER {name} ON {on}");
    match guarded {
        Guarded::Table { guard } => {
            let (fence, guard) = (D.literal(&fence_name(table)), D.literal(guard.as_str()));
            let call = format!("leasehold_guard_table({fence}, {guard})");
            let events = "INSERT OR UPDATE OR DELETE OR TRUNCATE";
            (create(TRIGGER, events, "STATEMENT", call).into(), vec![drop(TRIGGER)])
        }
        Guarded::Rows { prefix, key } => {
            let call = format!("leasehold_guard_rows({}, {})", D.literal(prefix.as_str()), D.literal(key));
            let rows = create(TRIGGER, "INSERT OR UPDATE OR DELETE", "ROW", call);
            let truncate =
                create(TRUNCATE, "TRUNCATE", "STATEMENT", "leasehold_refuse_truncate()".to_owned());
            (rows.into_iter().chain(truncate).collect(), vec![drop(TRUNCATE), drop(TRIGGER)])
        }
    }
}
