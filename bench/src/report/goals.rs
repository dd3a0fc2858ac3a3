//! What was aimed at, what was reached.

use std::fmt::Write as _;

use crate::contestant::Contestant;
use crate::figures::{ContestFigures, Figures, PartFigures};
use crate::growth::Step;
use crate::held::Keeper;
use crate::summary::Summary;
use crate::workload::Workload;

/// Acquires by one client may take so much longer than the disk alone.
const BESIDE_THE_DISK_MS: f64 = 0.08;
/// A lock among a million costs at most so many times what one among a thousand costs.
const GROWN: f64 = 1.3;
/// The p99.9 of acquires while a million locks are written down.
const SNAPSHOT_MS: f64 = 10.0;

/// One contest in which somebody of ours is to be so many times as fast as a peer.
struct Aim {
    what: &'static str,
    workload: Workload,
    clients: usize,
    ours: Contestant,
    peer: Contestant,
    times: f64,
}

const fn cycle(clients: usize, ours: Contestant, peer: Contestant, times: f64) -> Aim {
    Aim { what: "uncontended", workload: Workload::Cycle, clients, ours, peer, times }
}

const fn renew(peer: Contestant, times: f64) -> Aim {
    Aim { what: "renewals", workload: Workload::Renew, clients: 64, ours: Contestant::Embedded, peer, times }
}

const AIMS: [Aim; 17] = {
    use Contestant as C;
    [
        cycle(1, C::Embedded, C::Redis, 1.2),
        cycle(64, C::Embedded, C::Redis, 5.0),
        cycle(64, C::Embedded, C::Etcd, 20.0),
        cycle(64, C::Separate, C::Redis, 1.5),
        cycle(256, C::Embedded, C::Redis, 4.0),
        cycle(256, C::Embedded, C::Etcd, 24.0),
        cycle(256, C::Embedded, C::RedisVolatile, 2.0),
        cycle(64, C::OnPostgres, C::Postgres, 8.0),
        cycle(256, C::OnPostgres, C::Postgres, 10.0),
        cycle(64, C::OnEtcd, C::Etcd, 8.0),
        cycle(256, C::OnEtcd, C::Etcd, 10.0),
        cycle(64, C::OnEtcd3, C::Etcd3, 6.0),
        cycle(256, C::OnEtcd3, C::Etcd3, 10.0),
        cycle(64, C::OnZookeeper, C::Zookeeper, 3.0),
        cycle(256, C::OnZookeeper, C::Zookeeper, 4.0),
        renew(C::Etcd, 10.0),
        renew(C::Redis, 3.0),
    ]
};

/// A row of the table.
struct Goal {
    what: String,
    goal: String,
    measured: String,
    reached: bool,
}

/// The table of all goals that were measured.
pub(crate) fn table(figures: &Figures) -> String {
    let contests = AIMS.iter().filter_map(|aim| reached(aim, figures));
    let others = [
        beside_the_disk(figures),
        hand_off(figures),
        memory(Keeper::Leasehold, figures),
        memory(Keeper::LeaseholdStream, figures),
        over_http(figures),
        grown("time", Step::time_cost, figures),
        grown("the server's processor time", Step::cpu_cost, figures),
        beside_a_snapshot(figures),
    ];
    let rows: Vec<Goal> = contests.chain(others.into_iter().flatten()).collect();
    if rows.is_empty() {
        return String::new();
    }
    let reached = rows.iter().filter(|row| row.reached).count();
    let mut text = format!(
        "### Goals: {reached} of {} reached\n\nRatios are those of medians, with the least and the greatest of any one round.\n\n\
         | workload | goal | measured | |\n|---|---|---|---|\n",
        rows.len()
    );
    for Goal { what, goal, measured, reached } in rows {
        let verdict = if reached { "reached" } else { "**not reached**" };
        let _ = writeln!(text, "| {what} | {goal} | {measured} | {verdict} |");
    }
    text
}

fn reached(aim: &Aim, figures: &Figures) -> Option<Goal> {
    let &Aim { what, workload, clients, ours, peer, times } = aim;
    let contest = figures.contest((workload, clients), &[ours, peer])?;
    let measured = contest.of(ours)?.times(contest.of(peer)?);
    Some(Goal {
        what: format!("{what}, {clients} client{}: {}", if clients == 1 { "" } else { "s" }, ours.name()),
        goal: format!("≥ {times} × {}", peer.name()),
        reached: measured.of_medians >= times,
        measured: measured.to_string(),
    })
}

fn beside_the_disk(figures: &Figures) -> Option<Goal> {
    let contest = figures.contest((Workload::Cycle, 1), &[Contestant::Embedded])?;
    let (ours, disk) = (contest.of(Contestant::Embedded)?.latency.p50, contest.disk.as_ref()?.latency.p50);
    Some(Goal {
        what: "uncontended, 1 client: p50 of an acquire".to_owned(),
        goal: format!("≤ fdatasync + {BESIDE_THE_DISK_MS} ms"),
        measured: format!("{ours:.3} ms, fdatasync {disk:.3} ms"),
        reached: ours <= disk + BESIDE_THE_DISK_MS,
    })
}

/// Against whoever is the fastest of those that lose nothing.
fn hand_off(figures: &Figures) -> Option<Goal> {
    let contest = figures.contest((Workload::Handoff, 64), &[Contestant::Embedded])?;
    let (best, peer) = best_durable_peer(contest)?;
    let measured = contest.of(Contestant::Embedded)?.times(peer);
    Some(Goal {
        what: "contended hand-off, 64 waiters".to_owned(),
        goal: "≥ 4 × the best durable peer".to_owned(),
        measured: format!("{measured}, {}", best.name()),
        reached: measured.of_medians >= 4.0,
    })
}

fn best_durable_peer(contest: &ContestFigures) -> Option<(Contestant, &Summary)> {
    let peers = contest.results.iter().filter(|(who, _)| !who.is_ours() && who.is_durable());
    let best = peers.max_by(|(_, one), (_, other)| one.median().total_cmp(&other.median()));
    best.map(|(who, summary)| (*who, summary))
}

fn memory(who: Keeper, figures: &Figures) -> Option<Goal> {
    let held = figures.find(|part| if let PartFigures::Held(held) = part { Some(held) } else { None })?;
    let bytes = |who| held.iter().find(|held| held.who == who).map(|held| held.bytes_each);
    let (ours, redis) = (bytes(who)?, bytes(Keeper::Redis)?);
    Some(Goal {
        what: format!("memory a held lock: {}", who.name()),
        goal: "≤ Redis".to_owned(),
        measured: format!("{ours} bytes, Redis {redis}"),
        reached: ours <= redis,
    })
}

fn over_http(figures: &Figures) -> Option<Goal> {
    let http = figures.find(|part| if let PartFigures::Http(http) = part { Some(http) } else { None })?;
    let measured = http.leasehold.times(&http.empty);
    Some(Goal {
        what: "HTTP JSON, acquire and release".to_owned(),
        goal: "≥ 0.6 × an empty axum handler".to_owned(),
        reached: measured.of_medians >= 0.6,
        measured: measured.to_string(),
    })
}

fn grown(what: &str, cost: fn(&Step, &Step) -> f64, figures: &Figures) -> Option<Goal> {
    let growth =
        figures.find(|part| if let PartFigures::Growth(growth) = part { Some(growth) } else { None })?;
    let cost = cost(growth.held.last()?, growth.held.first()?);
    Some(Goal {
        what: format!("a cycle beside 1 M held locks: {what}"),
        goal: format!("≤ {GROWN} × that beside 1 k"),
        measured: format!("{cost:.2} ×"),
        reached: cost <= GROWN,
    })
}

fn beside_a_snapshot(figures: &Figures) -> Option<Goal> {
    let snapshots = figures
        .find(|part| if let PartFigures::Snapshots(snapshots) = part { Some(snapshots) } else { None })?;
    let p999 = snapshots.during.p999;
    Some(Goal {
        what: "p99.9 of an acquire during a snapshot of 1 M locks".to_owned(),
        goal: format!("< {SNAPSHOT_MS} ms"),
        measured: format!("{p999:.2} ms"),
        reached: p999 < SNAPSHOT_MS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Occasion, Part};
    use crate::group::Group;
    use crate::summary::Latency;

    fn summary(rate: f64, p50: f64) -> Summary {
        let latency = Latency { p50, ..Latency::default() };
        Summary { rates: vec![rate; 3], latency, ..Summary::default() }
    }

    #[test]
    fn only_what_was_measured_is_judged() {
        assert_eq!(table(&Figures::default()), "");
        let results =
            vec![(Contestant::Embedded, summary(3_000.0, 0.2)), (Contestant::Redis, summary(2_000.0, 0.2))];
        let contest = ContestFigures {
            group: Group::Embedded,
            workload: Workload::Cycle,
            clients: 1,
            results,
            disk: Some(summary(8_000.0, 0.11)),
            failed: Vec::new(),
        };
        let made = Occasion { date: String::new(), machine: String::new(), rounds: 3, turn_seconds: 1.0 };
        let mut figures = Figures::default();
        figures.add(Part { made, figures: PartFigures::Contest(contest) });
        let text = table(&figures);
        assert!(text.contains("1 of 2 reached"), "{text}");
        assert!(text.contains("| 1.50 × (1.50–1.50) | reached |"), "{text}");
        assert!(text.contains("| 0.200 ms, fdatasync 0.110 ms | **not reached** |"), "{text}");
    }
}
