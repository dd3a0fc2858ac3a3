//! Runs the plan: every contest, round by round, one contestant after the other.

use std::time::Duration;

use crate::args::{Contest, Extra, Plan};
use crate::engines::{Contestant, Engines};
use crate::growth::{self, Growth};
use crate::held::{self, Held};
use crate::http::{self, HttpFigures};
use crate::measured::Rounds;
use crate::shield::{self, Shield};
use crate::snapshot::{self, Snapshots};
use crate::workload::Workload;

/// A Java virtual machine compiles what it has seen often; before that its figures mean nothing.
const WARM_UP: Duration = Duration::from_secs(4);

/// What each contestant reached.
pub(crate) type Results = Vec<(Contestant, Rounds)>;

/// What was measured.
pub(crate) struct Figures {
    pub(crate) contests: Vec<(Workload, usize, Results)>,
    pub(crate) held: Vec<Held>,
    pub(crate) http: Option<HttpFigures>,
    pub(crate) growth: Option<Growth>,
    pub(crate) shield: Option<Shield>,
    pub(crate) snapshots: Option<Snapshots>,
}

/// Measures everything.
pub(crate) async fn run(plan: &Plan) -> anyhow::Result<Figures> {
    let mut engines = Engines::default();
    warm_up(plan, &mut engines).await?;
    let mut contests = Vec::new();
    for contest in &plan.contests {
        let rounds = one(plan, contest, &mut engines).await?;
        contests.push((contest.workload, contest.clients, rounds));
    }
    let held = if plan.held > 0 { held::run(plan.held).await? } else { Vec::new() };
    let mut figures = Figures { contests, held, http: None, growth: None, shield: None, snapshots: None };
    for extra in &plan.extras {
        match extra {
            Extra::Http => figures.http = Some(http::run(plan, &mut engines).await?),
            Extra::Growth => figures.growth = Some(growth::run(plan).await?),
            Extra::Shield => figures.shield = Some(shield::run(&mut engines).await?),
            Extra::Snapshot => figures.snapshots = Some(snapshot::run().await?),
        }
    }
    Ok(figures)
}

/// Starts everything that takes part, and lets what needs it get warm.
async fn warm_up(plan: &Plan, engines: &mut Engines) -> anyhow::Result<()> {
    let takes_part = |who: &Contestant| plan.contests.iter().any(|contest| contest.contestants.contains(who));
    for who in Contestant::ALL.into_iter().filter(takes_part) {
        let java = matches!(who, Contestant::Zookeeper | Contestant::OnZookeeper);
        let length = if java { WARM_UP } else { plan.turn / 4 };
        engines.turn(who, Workload::Cycle, 64, length).await?;
    }
    Ok(())
}

async fn one(plan: &Plan, contest: &Contest, engines: &mut Engines) -> anyhow::Result<Results> {
    let mut rounds: Vec<_> = contest.contestants.iter().map(|who| (*who, Rounds::new())).collect();
    for round in 1..=plan.rounds {
        eprintln!(
            "bench: {}, {} clients, round {round} of {}",
            contest.workload.name(),
            contest.clients,
            plan.rounds
        );
        for (who, results) in &mut rounds {
            results.add(&engines.turn(*who, contest.workload, contest.clients, plan.turn).await?);
        }
    }
    Ok(rounds)
}
