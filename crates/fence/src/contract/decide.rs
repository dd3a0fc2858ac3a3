//! The decision itself, without IO.

use std::num::NonZeroU64;

use super::fence::{Fence, Policy};
use super::grant::{Ask, Grant};
use super::row::Row;
use super::verdict::{Rejection, Verdict};

/// Whether this ask may write, and what the fence keeps if it does.
///
/// The caller holds the row (by a lock, a script, a compare-and-set) from before reading it until both the write and
/// the new row are durable.
pub fn decide(fence: &Fence, row: Option<&Row>, ask: Option<&Ask>) -> Verdict {
    match ask.ok_or(Rejection::MissingToken).and_then(|ask| admit(fence, row, ask)) {
        Ok(next) => Verdict::Admitted(next),
        Err(rejection) => Verdict::Rejected(rejection),
    }
}

/// Whether this grant may claim the fence: raise its maximum before the first read, so that no older holder can write
/// between that read and the write that follows from it. Claiming twice is claiming once.
pub fn decide_claim(fence: &Fence, row: Option<&Row>, grant: &Grant) -> Verdict {
    match claim(fence, row, grant) {
        Ok(next) => Verdict::Admitted(next),
        Err(rejection) => Verdict::Rejected(rejection),
    }
}

fn admit(fence: &Fence, row: Option<&Row>, ask: &Ask) -> Result<Option<Row>, Rejection> {
    let grant = ask.grant();
    check_scope(fence, row, grant)?;
    let writes = writes_of(row, grant)?;
    if let Some(step) = ask.step() {
        check_step(grant, step, writes)?;
    }
    if fence.policy() == Policy::Strict && writes > 0 {
        return Err(Rejection::Stale { presented: grant.token(), highest: grant.token() });
    }
    Ok(next(fence, grant, writes + 1))
}

fn claim(fence: &Fence, row: Option<&Row>, grant: &Grant) -> Result<Option<Row>, Rejection> {
    check_scope(fence, row, grant)?;
    writes_of(row, grant)?;
    let claimed = row.is_some_and(|row| row.highest == Some(grant.token()));
    Ok(if claimed { None } else { next(fence, grant, 0) })
}

fn check_scope(fence: &Fence, row: Option<&Row>, grant: &Grant) -> Result<(), Rejection> {
    let guard = row.map_or(fence.guard(), |row| &row.guard);
    if grant.resource() == guard && grant.resource() == fence.guard() && fence.takes(grant.kind()) {
        return Ok(());
    }
    Err(Rejection::WrongScope { presented: grant.resource().clone(), guard: guard.clone() })
}

/// How many writes of this very token were admitted, unless a higher token has been here.
fn writes_of(row: Option<&Row>, grant: &Grant) -> Result<u64, Rejection> {
    let presented = grant.token();
    match row.and_then(|row| Some((row.highest?, row.writes))) {
        Some((highest, _)) if highest > presented => Err(Rejection::Stale { presented, highest }),
        Some((highest, writes)) if highest == presented => Ok(writes),
        _ => Ok(0),
    }
}

fn check_step(grant: &Grant, step: NonZeroU64, writes: u64) -> Result<(), Rejection> {
    let token = grant.token();
    let expected = NonZeroU64::MIN.saturating_add(writes);
    match step.cmp(&expected) {
        std::cmp::Ordering::Less => Err(Rejection::AlreadyApplied { token, step }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Rejection::OutOfOrder { token, step, expected }),
    }
}

fn next(fence: &Fence, grant: &Grant, writes: u64) -> Option<Row> {
    let row = Row { guard: fence.guard().clone(), highest: Some(grant.token()), writes };
    grant.advances().then_some(row)
}
