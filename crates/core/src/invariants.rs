//! The promises of the table, one function each, checked by every test harness after every step. A promise about one
//! state takes the state; a promise about a run takes the facts of the run.

use std::collections::BTreeSet;

use crate::clocks::LifeIx;
use crate::command::Sharing;
use crate::fact::Fact;
use crate::journaled::Journaled;
use crate::lease_ids::Known;
use crate::resource::Resource;
use crate::table::LockTable;
use crate::usage::Usages;

/// A promise that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{promise} is broken: {detail}")]
pub struct Violation {
    /// Its id.
    pub promise: &'static str,
    /// What was found.
    pub detail: String,
}

type Check = Result<(), Violation>;

fn holds(promise: &'static str, is_so: bool, detail: impl FnOnce() -> String) -> Check {
    if is_so { Ok(()) } else { Err(Violation { promise, detail: detail() }) }
}

/// Every promise about a state.
///
/// # Errors
/// The first broken one.
pub fn check(table: &LockTable) -> Check {
    holds_are_disjoint(&table.journaled)?;
    tokens_are_unique(&table.journaled)?;
    leases_live_in_their_session(&table.journaled)?;
    indices_agree(&table.journaled)?;
    audit_is_chained(&table.journaled)?;
    memory_is_bounded(&table.journaled)?;
    usage_is_counted(&table.journaled)?;
    no_free_lock_with_a_waiter(table)?;
    every_life_has_one_timer(table)
}

/// S1: an exclusive holder is alone, a semaphore's holders have permits of their own, modes do not mix.
///
/// # Errors
/// The first resource where it is not so.
pub fn holds_are_disjoint(state: &Journaled) -> Check {
    for (key, resource) in state.resources.iter(&state.leases) {
        let leases: Vec<_> = resource.holders().map(|ix| state.leases.get(ix)).collect();
        let Some(first) = leases.first() else { continue };
        let mode = first.mode();
        holds("S1", leases.iter().all(|lease| lease.mode() == mode), || format!("modes mix at {key:?}"))?;
        match first.sharing() {
            Sharing::Exclusive => {
                holds("S1", leases.len() == 1, || format!("{} exclusive holders at {key:?}", leases.len()))?;
            }
            Sharing::Shared => {}
            Sharing::Semaphore { .. } => {
                let permits: BTreeSet<_> = leases.iter().map(|lease| lease.permit()).collect();
                holds("S1", permits.len() == leases.len(), || format!("a permit twice at {key:?}"))?;
            }
        }
    }
    Ok(())
}

/// S2, as far as one state can show it: live tokens are unique and none is above the counter.
///
/// # Errors
/// The first token where it is not so.
pub fn tokens_are_unique(state: &Journaled) -> Check {
    let mut seen = BTreeSet::new();
    for (_, lease) in state.leases.iter() {
        holds("S2", lease.token().get() <= state.last_token, || {
            format!("{:?} is above the counter", lease.token())
        })?;
        holds("S2", seen.insert(lease.token()), || format!("{:?} twice", lease.token()))?;
    }
    Ok(())
}

/// S2 over a run: each grant's token is larger than all before it. Returns the last token seen.
///
/// # Errors
/// The first grant where it is not so.
pub fn tokens_grow(facts: &[Fact], mut last: u64) -> Result<u64, Violation> {
    for fact in facts {
        match fact {
            Fact::Granted(granted) => {
                let token = granted.token.get();
                holds("S2", token > last, || format!("token {token} after {last}"))?;
                last = token;
            }
            Fact::Recovered { token_floor, .. } => last = last.max(*token_floor),
            _ => {}
        }
    }
    Ok(last)
}

/// S15: two states are the same, however they came about.
///
/// # Errors
/// When their snapshots differ.
pub fn states_are_equal(one: &Journaled, other: &Journaled) -> Check {
    holds("S15", canonical(one) == canonical(other), || "replay and live state differ".to_owned())
}

fn canonical(state: &Journaled) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written: Result<(), std::convert::Infallible> =
        crate::codec::encode_snapshot(state, usize::MAX, &mut |chunk| {
            bytes.extend_from_slice(&chunk);
            Ok(())
        });
    written.expect("the sink never fails");
    bytes
}

/// No lease outlives its session, and a session knows its leases.
///
/// # Errors
/// The first lease where it is not so.
pub fn leases_live_in_their_session(state: &Journaled) -> Check {
    let mut in_sessions = 0;
    for (ix, lease) in state.leases.iter() {
        let Some(session) = lease.session() else { continue };
        in_sessions += 1;
        let known = state.sessions.get(session).leases.contains(ix);
        holds("A5", known, || format!("{:?} is not known to its session", lease.id))?;
    }
    let claimed: usize = state.sessions.iter().map(|(_, session)| session.leases.len()).sum();
    holds("A5", claimed == in_sessions, || {
        format!("sessions claim {claimed} leases, {in_sessions} are theirs")
    })
}

/// Every index finds every lease, and nothing else.
///
/// # Errors
/// The first index that disagrees.
pub fn indices_agree(state: &Journaled) -> Check {
    let held: usize =
        state.resources.iter(&state.leases).map(|(_, resource)| resource.holders().count()).sum();
    let (live, ended) = (state.leases.iter().count(), state.outcomes.leases().iter().count());
    let ids = state.lease_ids.len();
    holds("index", held == live && state.leases.len() == live && ids == live + ended, || {
        format!("{live} leases, {held} holders, {ended} ended, {ids} ids")
    })?;
    for (ix, lease) in state.leases.iter() {
        let at_resource = state.resource(&lease.resource).is_some_and(|r| r.holders().any(|h| h == ix));
        let by_id = state.find_lease(lease.id) == Some(ix);
        holds("index", by_id && at_resource, || format!("{:?} is misplaced", lease.id))?;
    }
    for (ix, lease) in state.outcomes.leases().iter() {
        let by_id = state.known(lease.id) == Some(Known::Ended(ix));
        holds("index", by_id, || format!("{:?} is not where it ended", lease.id))?;
    }
    uses_are_in_order(state)?;
    let is_nothing = |resource: Resource<'_>| {
        !resource.is_held() && resource.endings().len() == 0 && resource.delays().is_empty()
    };
    let forgotten = state.resources.iter(&state.leases).find(|(_, resource)| is_nothing(*resource));
    holds("index", forgotten.is_none(), || format!("{forgotten:?} is kept for nothing"))
}

/// Every resource that was used stands once in the order of use.
fn uses_are_in_order(state: &Journaled) -> Check {
    let mut last = 0;
    for (used, key) in state.resources.recent() {
        let is_there = state.resource(key).is_some_and(|resource| resource.used() == used);
        holds("index", is_there && used > last, || format!("{key:?} is not where it was used"))?;
        last = used;
    }
    let used = state.resources.iter(&state.leases).filter(|(_, resource)| resource.used() > 0).count();
    let in_order = state.resources.recent().count();
    holds("index", used == in_order && in_order == state.resources.recent_len(), || {
        format!("{used} resources were used, {in_order} are in the order of it")
    })
}

/// S19: the audit log is hash-chained.
///
/// # Errors
/// The first entry that does not fit.
pub fn audit_is_chained(state: &Journaled) -> Check {
    let verified = state.audit.verify();
    holds("S19", verified.intact, || format!("entry {:?} does not fit", verified.first_bad))
}

/// What is kept after an ending is bounded.
///
/// # Errors
/// The first bound that is passed.
pub fn memory_is_bounded(state: &Journaled) -> Check {
    use leasehold_types::limits;
    let endings =
        state.resources.iter(&state.leases).map(|(_, resource)| resource.endings().len()).max().unwrap_or(0);
    holds("bounded", endings <= limits::ENDINGS_PER_RESOURCE, || {
        format!("{endings} endings of one resource")
    })?;
    let recent = state.resources.recent_len();
    holds("bounded", recent <= limits::RESOURCES_WITH_ENDINGS, || {
        format!("{recent} resources with endings")
    })?;
    let audit = state.audit.entries.len();
    holds("bounded", audit <= limits::AUDIT_ENTRIES, || format!("{audit} audit entries"))
}

/// S21, as far as one state can show it: what is counted for each tenant is what it has.
///
/// # Errors
/// When another count would be.
pub fn usage_is_counted(state: &Journaled) -> Check {
    let mut counted = Usages::default();
    state.leases.iter().for_each(|(_, lease)| counted.lease_begins(lease));
    state.sessions.iter().for_each(|(_, session)| counted.session_begins(session));
    holds("S21", counted == state.usages, || format!("{:?} is counted, {counted:?} is there", state.usages))
}

/// L1, L4: whoever is first in a queue really cannot be granted, unless the journal has no room.
///
/// # Errors
/// The first queue where it is not so.
pub fn no_free_lock_with_a_waiter(table: &LockTable) -> Check {
    for (key, _) in table.queues.resources() {
        let Some(first) = table.queues.first(key) else { continue };
        let could = table.place_for(key, first.acquire.sharing).is_some();
        let held_back = table.held_back.contains(key);
        holds("L1", !could || held_back, || format!("{key:?} has a place for its first waiter"))?;
    }
    Ok(())
}

/// Nothing that can end has been forgotten by the clock (L2), and nothing ends before its deadline (A4).
///
/// # Errors
/// The first life where it is not so.
pub fn every_life_has_one_timer(table: &LockTable) -> Check {
    let lives = table.journaled.leases.iter().filter(|(_, lease)| lease.own().is_some());
    for (ix, lease) in lives {
        let clock = table.life_clock(LifeIx::Lease(ix));
        let armed = clock.armed <= clock.deadline && table.timers.is_armed(clock.armed, LifeIx::Lease(ix));
        holds("L2", armed, || format!("{:?} has no timer", lease.id))?;
    }
    for (ix, session) in table.journaled.sessions.iter() {
        let clock = table.life_clock(LifeIx::Session(ix));
        let armed = clock.armed <= clock.deadline && table.timers.is_armed(clock.armed, LifeIx::Session(ix));
        holds("L2", armed, || format!("{:?} has no timer", session.id))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
