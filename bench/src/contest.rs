//! Runs the plan: every contest, round by round, one contestant after the other, then everything else. Before each part
//! whatever it does not need is ended. What goes wrong in one part, or for one contestant, is told and costs the others
//! nothing.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use crate::args::{Contest, Extra, Plan};
use crate::contestant::Contestant;
use crate::engines::Engines;
use crate::figures::{ContestFigures, Part, PartFigures};
use crate::group::Group;
use crate::measured::{Measured, Rounds};
use crate::report::occasion;
use crate::workload::Workload;
use crate::{disk, growth, held, http, shield, snapshot};

/// A Java virtual machine compiles what it has seen often; before that its figures mean nothing.
const WARM_UP: Duration = Duration::from_secs(4);
/// A turn may take so much longer than it should, for a start, for connecting, and for the last to be served.
const BEYOND: Duration = Duration::from_secs(90);
/// No part that is not a contest takes longer.
const EXTRA: Duration = Duration::from_secs(600);
/// The disk's part of a turn: enough for thousands of writes.
const DISK: u32 = 4;

/// Measures everything and gives each part to `keep` when it is done; returns what went wrong.
pub(crate) async fn run(
    plan: &Plan,
    keep: &mut impl FnMut(Part) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
    let (mut engines, mut wrong) = (Engines::default(), Vec::new());
    for contest in &plan.contests {
        engines.end_all_but(&contest.contestants);
        wrong.extend(warm_up(plan, contest, &mut engines).await);
        let figures = one(plan, contest, &mut engines).await?;
        let failed = figures.failed.iter().map(|(who, why)| format!("{}: {why}", who.name()));
        wrong.extend(failed);
        keep(Part { made: occasion(plan), figures: PartFigures::Contest(figures) })?;
    }
    for extra in &plan.extras {
        engines.end_all_but(needs(*extra));
        let figures = timeout(EXTRA, other(plan, *extra, &mut engines)).await;
        match figures.context("it took too long").flatten() {
            Ok(figures) => keep(Part { made: occasion(plan), figures })?,
            Err(error) => wrong.push(format!("{extra:?}: {error:#}")),
        }
    }
    Ok(wrong)
}

/// What a part uses of that which the contests use; the rest it starts and ends by itself.
const fn needs(extra: Extra) -> &'static [Contestant] {
    match extra {
        Extra::Held | Extra::Growth | Extra::Snapshot => &[],
        Extra::Http => &[Contestant::Embedded, Contestant::Redis],
        Extra::Shield => &[Contestant::Embedded, Contestant::Postgres],
    }
}

async fn other(plan: &Plan, extra: Extra, engines: &mut Engines) -> anyhow::Result<PartFigures> {
    Ok(match extra {
        Extra::Held => PartFigures::Held(held::run().await?),
        Extra::Http => PartFigures::Http(http::run(plan, engines).await?),
        Extra::Growth => PartFigures::Growth(growth::run(plan).await?),
        Extra::Snapshot => PartFigures::Snapshots(snapshot::run().await?),
        Extra::Shield => PartFigures::Shield(shield::run(engines).await?),
    })
}

/// Starts everything that takes part and does not run yet, and lets it get warm.
async fn warm_up(plan: &Plan, contest: &Contest, engines: &mut Engines) -> Vec<String> {
    let mut wrong = Vec::new();
    for who in &contest.contestants {
        if engines.was_warm(*who) {
            continue;
        }
        let length = if who.is_java() { WARM_UP } else { plan.turn / 4 };
        let warm = turn(engines, *who, (Workload::Cycle, 64), length).await;
        wrong.extend(warm.err().map(|error| format!("{error:#}")));
    }
    wrong
}

/// One turn of one contestant, which cannot last for ever.
async fn turn(
    engines: &mut Engines,
    who: Contestant,
    (workload, clients): (Workload, usize),
    length: Duration,
) -> anyhow::Result<Measured> {
    let turn = timeout(length + BEYOND, engines.turn(who, workload, clients, length)).await;
    let measured = turn.context("it took too long").flatten();
    measured.with_context(|| format!("{}, {}, {clients} clients", who.name(), workload.name()))
}

async fn one(plan: &Plan, contest: &Contest, engines: &mut Engines) -> anyhow::Result<ContestFigures> {
    let &Contest { group, workload, clients, ref contestants } = contest;
    let mut rounds: Vec<_> = contestants.iter().map(|who| (*who, Rounds::new())).collect();
    let (mut disk, mut failed) = (Rounds::new(), Vec::new());
    // Of the embedded journal it is the floor; and renewals write nothing.
    let with_disk = group == Group::Embedded && workload != Workload::Renew;
    for round in 1..=plan.rounds {
        let (journal, what) = (group.name(), workload.name());
        eprintln!("bench: {journal}: {what}, {clients} clients, round {round} of {}", plan.rounds);
        if with_disk {
            disk.add(&disk::turn(plan.turn / DISK)?);
        }
        let mut left = Vec::new();
        for (who, mut results) in rounds {
            match turn(engines, who, (workload, clients), plan.turn).await {
                Ok(measured) => {
                    results.add(&measured);
                    left.push((who, results));
                }
                Err(error) => failed.push((who, format!("{error:#}"))),
            }
        }
        rounds = left;
    }
    let results = rounds.iter().map(|(who, rounds)| (*who, rounds.summary())).collect();
    let disk = with_disk.then(|| disk.summary());
    Ok(ContestFigures { group, workload, clients, results, disk, failed })
}
