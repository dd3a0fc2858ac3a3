//! The view as lines of text. Nothing here knows a terminal beyond its size.

use super::View;
use super::counters::PrefixRates;
use crate::duration::shown;
use crate::failure::Failure;

/// So many prefixes at most: the hot ones are on top.
const MOST_PREFIXES: usize = 5;

/// One frame for a terminal, with what went wrong since, and the keys.
pub(super) fn live(view: &View, trouble: Option<&Failure>, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = lines(view, columns, rows.saturating_sub(1));
    let last = match trouble {
        Some(failure) => format!("OLD: {failure}"),
        None => "q quits".to_owned(),
    };
    lines.push(cut(&last, columns));
    lines
}

/// One frame, cut to this size.
pub(super) fn lines(view: &View, columns: usize, rows: usize) -> Vec<String> {
    let status = &view.status;
    let mut lines = vec![
        format!(
            "{} {}, epoch {}, journal {} ({}), slot {}{}",
            status.node,
            status.role.as_str(),
            status.epoch,
            status.journal,
            status.durability,
            status.slot,
            alarms(view)
        ),
        format!(
            "{} held, {} waiting, {} sessions, last token {}",
            status.locks_held, status.waiters, status.sessions_open, status.last_token
        ),
        totals(&view.rates),
        String::new(),
    ];
    lines.extend(prefixes(&view.rates));
    lines.extend(locks(view));
    lines.truncate(rows);
    lines.iter().map(|line| cut(line, columns)).collect()
}

fn alarms(view: &View) -> String {
    let mut alarms = String::new();
    if view.status.stalled {
        alarms.push_str("  STALLED: renewals are refused");
    }
    if !view.status.room {
        alarms.push_str("  DISK FULL: acquires are refused");
    }
    alarms
}

fn totals(rates: &[PrefixRates]) -> String {
    let sum = |of: fn(&PrefixRates) -> f64| rates.iter().map(of).sum::<f64>();
    format!(
        "each second: {:.1} acquires, {:.1} grants, {:.1} contended, {:.1} renewals, {:.1} expired",
        sum(|r| r.acquires),
        sum(|r| r.grants),
        sum(|r| r.contended),
        sum(|r| r.renewals),
        sum(|r| r.expired)
    )
}

fn prefixes(rates: &[PrefixRates]) -> Vec<String> {
    if rates.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![row(&["PREFIX", "ACQUIRES/S", "GRANTS/S", "CONTENDED/S", "RENEWALS/S", "EXPIRED/S"], 30)];
    for rate in rates.iter().take(MOST_PREFIXES) {
        let numbers = [rate.acquires, rate.grants, rate.contended, rate.renewals, rate.expired];
        let numbers = numbers.map(|number| format!("{number:.1}"));
        let [a, g, c, r, e] = &numbers;
        lines.push(row(&[rate.prefix.as_str(), a, g, c, r, e], 30));
    }
    lines.push(String::new());
    lines
}

fn locks(view: &View) -> Vec<String> {
    let mut lines = vec![row(&["RESOURCE", "WAITERS", "HELD", "LEFT", "TOKEN", "MISSED", "OWNER"], 30)];
    for lock in &view.locks {
        let (resource, owner) = (lock.resource.to_string(), lock.owner_id.to_string());
        let (waiters, token) = (lock.waiters.to_string(), lock.fencing_token.to_string());
        let (held, left, missed) = (shown(lock.held_ms), shown(lock.remaining_ms), lock.missed.to_string());
        lines.push(row(&[&resource, &waiters, &held, &left, &token, &missed, &owner], 30));
    }
    if view.more {
        lines.push("there are more; name a prefix".into());
    }
    lines
}

/// The first cell in a column of its own width, the others behind it.
fn row(cells: &[&str], first: usize) -> String {
    let mut line = format!("{:<first$}", cut(cells[0], first));
    for cell in &cells[1..] {
        line.push_str(&format!("  {cell:<11}"));
    }
    line.trim_end().to_owned()
}

/// No longer than this, and without anything that a terminal would obey.
fn cut(line: &str, columns: usize) -> String {
    line.chars().map(|c| if c.is_control() { '?' } else { c }).take(columns).collect()
}

#[cfg(test)]
mod tests {
    use leasehold_api::{LockRecord, StatusAnswer};

    use super::*;

    fn view() -> View {
        let status: StatusAnswer = serde_json::from_value(serde_json::json!({
            "clusterId": "67e55044-10b1-426f-9247-bb680e5fe0c8", "generation": 1, "node": "n1", "role": "active",
            "epoch": 3, "journal": "embedded", "durability": "durable", "version": "0.1.0", "activeAddress": null,
            "nodes": [], "stalled": false, "room": false, "locksHeld": 1, "sessionsOpen": 0, "waiters": 2,
            "lastToken": 9, "slot": 40, "lag": 0, "format": 2, "knownFormat": 2
        }))
        .expect("a status");
        let lock: LockRecord = serde_json::from_value(serde_json::json!({
            "resource": "billing/close", "ownerId": "ada", "fencingToken": 9, "mode": "exclusive",
            "class": "correctness", "guarantee": "lease_only", "createdAt": "2026-11-15T20:19:08.169Z",
            "expiresAt": "2026-11-15T20:19:08.169Z", "ttlMs": 60000, "remainingMs": 50000, "heldMs": 10000,
            "lockDelayMs": 0, "renewals": 0, "missed": 1, "maxGapMs": 0, "waiters": 2
        }))
        .expect("a record");
        let rates = PrefixRates {
            prefix: "billing".into(),
            acquires: 4.0,
            grants: 1.0,
            contended: 3.0,
            renewals: 0.5,
            expired: 0.0,
        };
        View { status, rates: vec![rates], locks: vec![lock], more: false }
    }

    #[test]
    fn a_frame_shows_node_rates_prefixes_and_locks() {
        let frame = lines(&view(), 120, 40);
        assert!(frame[0].ends_with("DISK FULL: acquires are refused"), "{frame:#?}");
        assert_eq!(frame[1], "1 held, 2 waiting, 0 sessions, last token 9");
        assert_eq!(
            frame[2],
            "each second: 4.0 acquires, 1.0 grants, 3.0 contended, 0.5 renewals, 0.0 expired"
        );
        assert!(frame[5].starts_with("billing ") && frame[5].contains("3.0"), "{frame:#?}");
        let lock: Vec<&str> = frame[8].split_whitespace().collect();
        assert_eq!(lock, ["billing/close", "2", "10.0s", "50.0s", "9", "1", "ada"]);
    }

    #[test]
    fn a_frame_fits_its_terminal() {
        for (columns, rows) in [(1, 1), (20, 3), (80, 24)] {
            let frame = live(&view(), None, columns, rows);
            assert!(frame.len() <= rows.max(1), "{columns} x {rows}");
            assert!(frame.iter().all(|line| line.chars().count() <= columns));
        }
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(cut("a\x1b[2Jb", 10), "a?[2Jb");
    }
}
