//! The statements of the fence table on PostgreSQL, for every driver: `$1` name, `$2` permit, `$3` guard, `$4` token.

use super::{FENCE_TABLE, Form};
use crate::Grant;

/// Raises the maximum, if the guard is the one kept and the token higher.
pub(crate) fn claim() -> String {
    format!(
        "INSERT INTO {FENCE_TABLE} AS f (name, permit, guard, token, writes) VALUES ($1, $2, $3, $4, 0) \
         ON CONFLICT (name, permit) DO UPDATE SET token = EXCLUDED.token, writes = 0 \
         WHERE f.guard = EXCLUDED.guard AND f.token < EXCLUDED.token"
    )
}

/// Check and advance in one; `None`: the answer is no, whatever the row says.
pub(crate) fn advance(form: Form) -> Option<String> {
    if form == Form::Never {
        return None;
    }
    Some(if form.admits_first() {
        format!(
            "INSERT INTO {FENCE_TABLE} AS f (name, permit, guard, token, writes) VALUES ($1, $2, $3, $4, 1) \
             ON CONFLICT (name, permit) DO UPDATE SET token = EXCLUDED.token, \
             writes = CASE WHEN f.token = EXCLUDED.token THEN f.writes + 1 ELSE 1 END \
             WHERE f.guard = EXCLUDED.guard AND {}",
            form.condition("f.token", "f.writes", "EXCLUDED.token")
        )
    } else {
        format!(
            "UPDATE {FENCE_TABLE} AS f SET writes = f.writes + 1 \
             WHERE f.name = $1 AND f.permit = $2 AND f.guard = $3 AND {}",
            form.condition("f.token", "f.writes", "$4")
        )
    })
}

/// Makes the row where there is none. Its token is 0, so `$4` is only looked at.
pub(crate) fn make() -> String {
    format!(
        "INSERT INTO {FENCE_TABLE} (name, permit, guard, token, writes) \
         SELECT $1, $2, $3, 0, 0 WHERE $4 > 0 ON CONFLICT (name, permit) DO NOTHING"
    )
}

/// The row, held until the transaction ends: against everyone for an advancing grant, against writers for a shared.
pub(crate) fn read(grant: &Grant) -> String {
    let hold = if grant.advances() { "FOR UPDATE" } else { "FOR SHARE" };
    format!("SELECT guard, token, writes FROM {FENCE_TABLE} WHERE name = $1 AND permit = $2 {hold}")
}
