//! The tables.

use std::fmt::Write as _;

use crate::figures::{ContestFigures, Figures, Occasion, Part, PartFigures, contests};
use crate::growth::{Growth, Step};
use crate::held::Held;
use crate::http::HttpFigures;
use crate::shield::Shield;
use crate::snapshot::Snapshots;
use crate::summary::{Latency, Summary};

/// Title, table and occasions of each.
pub(crate) fn all(figures: &Figures) -> impl Iterator<Item = (String, String, Vec<&Occasion>)> {
    figures.tables().filter_map(|parts| {
        let (title, text) = match &parts.first()?.figures {
            PartFigures::Contest(figures) => contest(figures, parts),
            PartFigures::Held(figures) => held(figures),
            PartFigures::Http(figures) => over_http(figures),
            PartFigures::Growth(figures) => grown(figures),
            PartFigures::Shield(figures) => shielded(figures),
            PartFigures::Snapshots(figures) => beside_a_snapshot(figures),
        };
        let mut occasions: Vec<_> = parts.iter().map(|part| &part.made).collect();
        occasions.dedup();
        Some((title, text, occasions))
    })
}

/// One workload at one number of clients, group after group.
fn contest(ContestFigures { workload, clients, .. }: &ContestFigures, parts: &[Part]) -> (String, String) {
    let mut text = "| | a second | spread | p50 ms | p99 ms | p99.9 ms | Leasehold is |\n|---|---:|---|---:|---:|---:|---|\n".to_owned();
    contests(parts).for_each(|figures| text.push_str(&of_group(figures)));
    let clients = if *clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    (format!("{}, {clients}", workload.name()), text)
}

/// The first of a group is ours, and each peer is compared with it.
fn of_group(contest: &ContestFigures) -> String {
    let mut text = format!("| **{}** | | | | | | |\n", contest.group.name());
    let ours = contest.results.first().filter(|(who, _)| who.is_ours());
    for (who, summary) in &contest.results {
        let ours = ours.filter(|_| !who.is_ours());
        let times = ours.map(|(_, ours)| format!("{:.1} × this", ours.times(summary).of_medians));
        let not_counted = taken_again(summary);
        let notes: Vec<_> = times.into_iter().chain(not_counted).collect();
        text.push_str(&row(who.name(), summary, &notes.join("; ")));
    }
    if let Some(disk) = &contest.disk {
        text.push_str(&row("*the disk: 4 KiB and fdatasync, one after the other*", disk, ""));
    }
    for (who, why) in &contest.failed {
        let why = why.replace(['\n', '|'], " ");
        let _ = writeln!(text, "| {} | | | | | | did not finish: {why} |", who.name());
    }
    text
}

/// What a contestant did beside the hand-offs that are counted.
fn taken_again(summary: &Summary) -> Option<String> {
    let per_cent = (100.0 * summary.taken_again).round();
    (per_cent > 0.0).then(|| format!("{per_cent} % of takes not counted: by whoever had it before"))
}

fn row(who: &str, summary: &Summary, times: &str) -> String {
    let (least, most) = summary.spread();
    let Latency { p50, p99, p999 } = summary.latency;
    let (median, least, most) = (number(summary.median()), number(least), number(most));
    format!("| {who} | {median} | {least}–{most} | {p50:.2} | {p99:.2} | {p999:.2} | {times} |\n")
}

fn held(held: &[Held]) -> (String, String) {
    let mut text =
        "| | locks | bytes each | bytes each after kill -9 and a restart | ready again after |\n|---|---:|---:|---:|---:|\n"
            .to_owned();
    for Held { who, locks, bytes_each, bytes_each_restarted, ready_after_ms } in held {
        let ready = *ready_after_ms as f64 / 1_000.0;
        let _ = writeln!(
            text,
            "| {} | {} | {bytes_each} | {bytes_each_restarted} | {ready:.2} s |",
            who.name(),
            number(*locks as f64)
        );
    }
    ("Held locks".to_owned(), text)
}

fn over_http(http: &HttpFigures) -> (String, String) {
    let mut text = "| acquire and release | cycles a second | spread | p50 ms | p99 ms | p99.9 ms | Leasehold is |\n|---|---:|---|---:|---:|---:|---|\n".to_owned();
    let times = |peer| format!("{:.2} × this", http.leasehold.times(peer).of_medians);
    text.push_str(&row("Leasehold, 64 connections", &http.leasehold, ""));
    text.push_str(&row("an empty axum handler, 64 connections", &http.empty, &times(&http.empty)));
    text.push_str(&row("Redis, synced, with token, 64 connections", &http.redis, &times(&http.redis)));
    text.push_str(&row("Leasehold, 1 connection", &http.alone, ""));
    for (who, summary) in &http.steady {
        text.push_str(&row(&format!("{}, 5,000 a second, steady", who.name()), summary, ""));
    }
    ("JSON over HTTP".to_owned(), text)
}

fn grown(growth: &Growth) -> (String, String) {
    let mut text =
        "| | a second | p99.9 ms | time | server's processor | its cost |\n|---|---:|---:|---:|---:|---:|\n"
            .to_owned();
    let parts = [
        ("cycles beside", "held locks", &growth.held),
        ("cycles beside", "sessions", &growth.sessions),
        ("cycles beside", "waiters of another lock", &growth.waiters),
        ("hand-offs among", "who want one lock", &growth.queue),
    ];
    for (how, what, steps) in parts {
        let Some(first) = steps.first() else { continue };
        for step @ Step { size, summary, cpu_us } in steps {
            let _ = writeln!(
                text,
                "| {how} {} {what} | {} | {:.2} | {:.2} × | {cpu_us:.1} µs | {:.2} × |",
                number(*size as f64),
                number(summary.median()),
                summary.latency.p999,
                step.time_cost(first),
                step.cpu_cost(first),
            );
        }
    }
    ("Growth".to_owned(), text)
}

fn shielded(shield: &Shield) -> (String, String) {
    let mut text =
        "| | wasted writes | database CPU | took | completions a second |\n|---|---:|---:|---:|---:|\n"
            .to_owned();
    for (how, way) in
        [("conditional writes alone", &shield.alone), ("under a lock, with a fence", &shield.shielded)]
    {
        let _ = writeln!(
            text,
            "| {how} | {} | {:.2} s | {:.2} s | {} |",
            number(way.wasted),
            way.cpu_seconds,
            way.seconds,
            number(shield.writers as f64 / way.seconds.max(1e-9)),
        );
    }
    (format!("The shield: {} writers change one PostgreSQL row", number(shield.writers as f64)), text)
}

fn beside_a_snapshot(snapshots: &Snapshots) -> (String, String) {
    let mut text = "| acquires by 16 tasks | p50 ms | p99 ms | p99.9 ms |\n|---|---:|---:|---:|\n".to_owned();
    for (when, latency) in [("while it is made", &snapshots.during), ("without one", &snapshots.without)] {
        let Latency { p50, p99, p999 } = latency;
        let _ = writeln!(text, "| {when} | {p50:.2} | {p99:.2} | {p999:.2} |");
    }
    let held = number(snapshots.held as f64);
    (format!("A snapshot of {held} held locks, made within {} s", snapshots.turns), text)
}

/// A whole number with separators.
fn number(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([number(0.4), number(999.6), number(1_234_567.0)], ["0", "1,000", "1,234,567"]);
    }
}
