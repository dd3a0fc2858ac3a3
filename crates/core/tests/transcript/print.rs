//! Replies and facts as lines that people like to read.

use leasehold_core::{Fact, Holder, LeaseView, LifeId, Refusal, Reply, SessionEnd};
use leasehold_types::{EndReason, FencingToken, Permit, WallTime};

use crate::support::ids::{lease_name, session_name};

/// The wall clock when a story begins.
const WALL_BEGINS_MS: u64 = 1_800_000_000_000;

pub(crate) fn duration(ms: u64) -> String {
    match (ms / 1_000, ms % 1_000) {
        (0, ms) if ms > 0 => format!("{ms}ms"),
        (s, 0) => format!("{s}s"),
        (s, ms) => format!("{s}.{}s", format!("{ms:03}").trim_end_matches('0')),
    }
}

fn wall(at: WallTime) -> String {
    duration(at.0 - WALL_BEGINS_MS)
}

fn permit(permit: Option<Permit>) -> String {
    permit.map_or(String::new(), |permit| format!(" permit {}", permit.0))
}

fn token(token: FencingToken) -> String {
    format!("#{token}")
}

fn optional_token(known: Option<FencingToken>) -> String {
    known.map_or_else(|| "no token".to_owned(), token)
}

fn reason(reason: EndReason, max_hold: bool) -> String {
    format!("{reason}{}", if max_hold { " (max hold)" } else { "" })
}

/// One line, or a first line and more to stand below it.
pub(crate) fn reply(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Granted(grant) => {
            let (id, ttl) = (lease_name(grant.lease_id), duration(grant.ttl_ms));
            let warning = grant.warning.map_or("", |_| " (warns of the ttl)");
            let guarantee = grant.guarantee;
            let permit = permit(grant.permit);
            let renewed = if grant.session_renewed { " and its session renewed" } else { "" };
            vec![format!(
                "granted {} to {}: {id} {}{permit} ttl={ttl}{renewed} {guarantee}{warning}",
                grant.resource,
                grant.owner,
                token(grant.token)
            )]
        }
        Reply::NotGranted(no) => {
            let holders = no.holders.iter().map(holder).collect::<Vec<_>>().join(", ");
            let regrant =
                no.earliest_regrant_at.map_or(String::new(), |at| format!(", closed until {}", wall(at)));
            vec![format!("not granted {}: held by [{holders}], {} waiting{regrant}", no.resource, no.waiters)]
        }
        Reply::Renewed(renewed) => {
            let locks = renewed.locks.iter().map(|lock| format!("{} {}", lock.resource, token(lock.token)));
            let locks = locks.collect::<Vec<_>>().join(", ");
            vec![format!(
                "renewed {} ttl={} [{locks}]",
                lease_name(renewed.lease_id),
                duration(renewed.ttl_ms)
            )]
        }
        Reply::Released { resource, token: number, .. } => {
            vec![format!("released {} {}", resource.name(), token(*number))]
        }
        Reply::Proclaimed { resource, token: number } => {
            vec![format!("proclaimed at {resource} {}", token(*number))]
        }
        Reply::SessionOpened(opened) => {
            vec![format!("opened {} ttl={}", session_name(opened.session_id), duration(opened.ttl_ms))]
        }
        Reply::SessionRenewed(renewed) => {
            let mut lines = vec![format!(
                "kept {} ttl={} with {} locks",
                session_name(renewed.session_id),
                duration(renewed.ttl_ms),
                renewed.lock_count
            )];
            lines.extend(renewed.ended.iter().map(|ended| {
                let (id, number) = (lease_name(ended.lease_id), token(ended.token));
                format!("ended: {id} {} {number} {}", ended.resource, ended.reason)
            }));
            lines
        }
        Reply::SessionClosed { session_id, released } => {
            vec![format!("closed {} with {released} locks", session_name(*session_id))]
        }
        Reply::ForceReleased { released, audit_seq } => {
            let holders = released.iter().map(holder).collect::<Vec<_>>().join(", ");
            vec![format!("forced out [{holders}], audit entry {audit_seq}")]
        }
        Reply::Recovered { generation, token_floor } => {
            vec![format!("recovered: generation {generation}, tokens above {token_floor}")]
        }
        Reply::FormatRaised(raised) => vec![format!("format {}, it was {}", raised.format, raised.before)],
        Reply::BackupNoted { audit_seq } => vec![format!("backup noted, audit entry {audit_seq}")],
        Reply::Refused(no) => vec![format!("refused: {}", refusal(no))],
        answer => question(answer),
    }
}

fn holder(holder: &Holder) -> String {
    let Holder { owner, token: number, mode, .. } = holder;
    format!("{owner} {} {mode}{} until {}", token(*number), permit(holder.permit), wall(holder.expires_at))
}

fn refusal(no: &Refusal) -> String {
    match no {
        Refusal::LeaseNotHeld { reason: why, max_hold, token } => {
            format!("lease not held, {}, {}", reason(*why, *max_hold), optional_token(*token))
        }
        Refusal::StaleToken { current } => format!("stale token, current {current:?}"),
        Refusal::NotAsSession { field } => format!("{field} is not the session's"),
        other => format!("{other:?}"),
    }
}

fn question(answer: &Reply) -> Vec<String> {
    match answer {
        Reply::Lease(view) => vec![lease(view)],
        Reply::Locks(page) => {
            let mut lines = vec![format!(
                "{} locks{}",
                page.locks.len(),
                if page.next.is_some() { ", more" } else { "" }
            )];
            lines.extend(page.locks.iter().map(lease));
            lines
        }
        Reply::Explained(all) => {
            let regrant =
                all.earliest_regrant_at.map_or(String::new(), |at| format!(", closed until {}", wall(at)));
            let mut lines = vec![format!(
                "{}: last {}, contended {}{regrant}",
                all.resource,
                optional_token(all.last_token),
                all.contended
            )];
            lines.extend(all.holders.iter().map(|view| format!("holder {}", lease(view))));
            lines.extend(all.waiters.iter().map(|waiter| {
                format!("waiter {} {} for {}", waiter.owner, waiter.mode, duration(waiter.waiting_ms))
            }));
            lines.extend(all.endings.iter().map(|ending| {
                let why = reason(ending.reason, ending.max_hold);
                format!("ending {} {} {why} at {}", ending.owner, token(ending.token), wall(ending.at))
            }));
            lines
        }
        Reply::Validated { current, last_token } => {
            vec![format!(
                "{}, last {}",
                if *current { "current" } else { "not current" },
                optional_token(*last_token)
            )]
        }
        Reply::Successor(successor) => vec![successor.as_ref().map_or("nobody".into(), |now| {
            format!("{}: {} instead of {}", now.resource, token(now.token), token(now.ended))
        })],
        Reply::Session(view) => vec![session(view)],
        Reply::Sessions { sessions, next } => {
            let mut lines =
                vec![format!("{} sessions{}", sessions.len(), if next.is_some() { ", more" } else { "" })];
            lines.extend(sessions.iter().map(session));
            lines
        }
        Reply::Audit { entries, more } => {
            let mut lines = vec![format!("{} entries{}", entries.len(), if *more { ", more" } else { "" })];
            lines.extend(entries.iter().map(|entry| {
                let resource = entry.resource.as_ref().map_or("-", |resource| resource.name());
                let identity = entry.identity.as_deref().unwrap_or("-");
                format!(
                    "{} {} {resource} by {} ({identity}): {} {:?}",
                    entry.seq,
                    entry.action.as_str(),
                    entry.actor,
                    entry.reason,
                    entry.tokens
                )
            }));
            lines
        }
        Reply::AuditVerified(verified) => {
            let found = if verified.intact { "intact" } else { "broken" };
            vec![format!("{found}, {} entries", verified.entries)]
        }
        other => vec![format!("{other:?}")],
    }
}

fn lease(view: &LeaseView) -> String {
    let mut line = format!(
        "{} {} by {} {}{} left={} of {} held={} renewals={}",
        view.resource,
        token(view.token),
        view.owner,
        view.mode,
        permit(view.permit),
        duration(view.remaining_ms),
        duration(view.ttl_ms),
        duration(view.held_ms),
        view.renewals
    );
    if view.missed > 0 {
        let error = view.last_error.as_deref().unwrap_or("-");
        line += &format!(" missed={} error={error} gap={}", view.missed, duration(view.max_gap_ms));
    }
    if let Some(value) = &view.value {
        line += &format!(" value={value}");
    }
    line
}

fn session(view: &leasehold_core::SessionView) -> String {
    format!(
        "{} of {} left={} of {} with {} locks",
        session_name(view.session_id),
        view.owner,
        duration(view.remaining_ms),
        duration(view.ttl_ms),
        view.lock_count
    )
}

fn life(of: LifeId) -> String {
    match of {
        LifeId::Lease(id) => lease_name(id),
        LifeId::Session(id) => session_name(id),
    }
}

/// One line for one fact.
pub(crate) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Granted(granted) => {
            let (id, number) = (lease_name(granted.lease_id), token(granted.token));
            format!("granted {id} {} {number}{}", granted.resource, permit(granted.permit))
        }
        Fact::Released { lease_id, .. } => format!("released {}", lease_name(*lease_id)),
        Fact::Expired { lease_id, max_hold, .. } => {
            format!("expired {}{}", lease_name(*lease_id), if *max_hold { " (max hold)" } else { "" })
        }
        Fact::TookOver(by) => format!("{} took over in epoch {}", by.node, by.epoch),
        Fact::SessionOpened(began) => format!("session opened {}", session_name(began.session_id)),
        Fact::SessionEnded { session_id, cause, .. } => {
            let how = match cause {
                SessionEnd::Closed => "closed",
                SessionEnd::Expired => "expired",
                SessionEnd::ByOperator { .. } => "by operator",
            };
            format!("session ended {} {how}", session_name(*session_id))
        }
        Fact::ForceReleased(forced) => {
            let ids = forced.lease_ids.iter().map(|id| lease_name(*id)).collect::<Vec<_>>().join(" ");
            format!("force-released {} [{ids}]", forced.resource)
        }
        Fact::TtlChanged { of, ttl, floor_ms } => {
            let floor = if *floor_ms > 0 {
                format!(" but {} as promised", duration(*floor_ms))
            } else {
                String::new()
            };
            format!("ttl of {} changed to {}{floor}", life(*of), duration(ttl.ms()))
        }
        Fact::Noted { of, remaining_ms, age_ms } => {
            format!("noted {} left={} age={}", life(*of), duration(*remaining_ms), duration(*age_ms))
        }
        Fact::NoteCleared { of } => format!("note of {} cleared", life(*of)),
        Fact::DelayEnded { resource, token: number } => {
            format!("lock delay ended {resource} {}", token(*number))
        }
        Fact::IdClosed { lease_id, .. } => format!("id closed {}", lease_name(*lease_id)),
        Fact::Forgotten { through } => format!("forgotten through {through}"),
        Fact::EndingsSeen { lease_ids, .. } => {
            format!(
                "endings seen {}",
                lease_ids.iter().map(|id| lease_name(*id)).collect::<Vec<_>>().join(" ")
            )
        }
        Fact::Proclaimed { lease_id, value } => format!("proclaimed {} value={value}", lease_name(*lease_id)),
        Fact::Recovered { generation, token_floor, .. } => {
            format!("recovered generation {generation} floor {token_floor}")
        }
        other => format!("{other:?}"),
    }
}
