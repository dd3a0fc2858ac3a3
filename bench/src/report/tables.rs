//! The tables.

use std::fmt::Write as _;

use crate::contest::Figures;
use crate::engines::Contestant;
use crate::growth::Growth;
use crate::held::Held;
use crate::http::HttpFigures;
use crate::measured::Rounds;
use crate::shield::Shield;
use crate::snapshot::Snapshots;

/// All of them.
pub(crate) fn all(figures: &Figures) -> String {
    let mut text = String::new();
    for (workload, clients, rounds) in &figures.contests {
        let _ = write!(text, "\n### {}, {clients} clients\n\n", workload.name());
        contest(rounds, &mut text);
    }
    if !figures.held.is_empty() {
        held(&figures.held, &mut text);
    }
    if let Some(http) = &figures.http {
        over_http(http, &mut text);
    }
    if let Some(growth) = &figures.growth {
        grown(growth, &mut text);
    }
    if let Some(shield) = &figures.shield {
        shielded(shield, &mut text);
    }
    if let Some(snapshots) = &figures.snapshots {
        beside_a_snapshot(snapshots, &mut text);
    }
    text
}

fn contest(rounds: &[(Contestant, Rounds)], text: &mut String) {
    text.push_str("| | a second | spread | p50 ms | p99 ms | Leasehold is |\n|---|---:|---|---:|---:|---|\n");
    let rate = |who: Contestant| rounds.iter().find(|(other, _)| *other == who).map(|(_, r)| r.median());
    for (who, results) in rounds {
        let (least, most) = results.spread();
        let ours = match who.is_ours() {
            true => who.peer().and_then(rate).map(|peer| (results.median(), peer, "its engine's recipe")),
            false => rate(Contestant::Embedded).map(|ours| (ours, results.median(), "this")),
        };
        let times =
            ours.map_or(String::new(), |(ours, peer, of)| format!("{:.1} × {of}", ours / peer.max(1e-9)));
        let _ = writeln!(
            text,
            "| {} | {} | {}–{} | {:.2} | {:.2} | {times} |",
            who.name(),
            number(results.median()),
            number(least),
            number(most),
            results.latency_ms(0.5),
            results.latency_ms(0.99),
        );
    }
}

fn held(held: &[Held], text: &mut String) {
    text.push_str(
        "\n### Held locks\n\n| | locks | bytes each | ready again after kill -9 |\n|---|---:|---:|---:|\n",
    );
    for Held { who, locks, bytes_each, ready_after } in held {
        let ready = ready_after.map_or(String::new(), |after| format!("{:.2} s", after.as_secs_f64()));
        let _ = writeln!(text, "| {who} | {} | {bytes_each} | {ready} |", number(*locks as f64));
    }
}

fn over_http(http: &HttpFigures, text: &mut String) {
    let (ours, empty) = (http.leasehold.median(), http.empty.median());
    let _ = write!(
        text,
        "\n### JSON over HTTP\n\n| 64 connections, acquire + release | cycles a second |\n|---|---:|\n\
         | Leasehold, durable | {} |\n| an empty axum handler | {} |\n| ratio | {:.2} |\n\n\
         One connection, one call at a time: {} cycles a second, p50 of an acquire {:.2} ms.\n\n\
         | 5,000 acquires a second, steady | reached | p99 ms |\n|---|---:|---:|\n",
        number(ours),
        number(empty),
        ours / empty.max(1e-9),
        number(http.alone.0),
        http.alone.1,
    );
    for (who, reached, p99) in &http.steady {
        let _ = writeln!(text, "| {} | {} | {p99:.2} |", who.name(), number(*reached));
    }
}

fn grown(growth: &Growth, text: &mut String) {
    text.push_str("\n### Growth: 16 tasks acquire and release beside …\n\n| beside | cycles a second | p99.9 ms | cost |\n|---|---:|---:|---:|\n");
    let parts = [("held locks", &growth.held), ("sessions", &growth.sessions), ("waiters", &growth.waiters)];
    for (what, figures) in parts {
        let first = figures.first().map_or(0.0, |(_, rate, _)| *rate);
        for (size, rate, p999) in figures {
            let cost = first / rate.max(1e-9);
            let size = number(*size as f64);
            let _ = writeln!(text, "| {size} {what} | {} | {p999:.2} | {cost:.2} × |", number(*rate));
        }
    }
}

fn shielded(shield: &Shield, text: &mut String) {
    let _ = write!(
        text,
        "\n### The shield: {} writers change one PostgreSQL row\n\n| | wasted writes | database CPU | took | a second |\n|---|---:|---:|---:|---:|\n",
        number(shield.writers as f64)
    );
    for (how, way) in
        [("conditional writes alone", &shield.alone), ("under a lock, with a fence", &shield.shielded)]
    {
        let seconds = way.took.as_secs_f64();
        let _ = writeln!(
            text,
            "| {how} | {} | {:.2} s | {seconds:.2} s | {} |",
            number(way.wasted as f64),
            way.cpu.as_secs_f64(),
            number(shield.writers as f64 / seconds.max(1e-9)),
        );
    }
}

fn beside_a_snapshot(snapshots: &Snapshots, text: &mut String) {
    let _ = write!(
        text,
        "\n### A snapshot of {} held locks, which took {} s\n\n| acquires by 16 tasks | p50 ms | p99 ms | p99.9 ms |\n|---|---:|---:|---:|\n",
        number(snapshots.held as f64),
        snapshots.turns
    );
    for (when, measured) in [("while it is made", &snapshots.during), ("without one", &snapshots.without)] {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| measured.latency_ms(quantile));
        let _ = writeln!(text, "| {when} | {p50:.2} | {p99:.2} | {p999:.2} |");
    }
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
