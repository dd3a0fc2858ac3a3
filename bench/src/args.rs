//! As typed, and as meant.

use std::path::PathBuf;
use std::time::Duration;

use crate::contestant::Contestant;
use crate::group::Group;
use crate::instructions::Piece;
use crate::workload::Workload;

/// Where the figures of this project stand.
const PAGE: &str = "docs/reference/performance.md";

/// Measures Leasehold and its peers side by side.
#[derive(clap::Parser, Debug)]
#[command(name = "leasehold-bench")]
pub(crate) struct Args {
    /// Few and short rounds: shows that everything works, in minutes
    #[arg(long)]
    quick: bool,
    /// A handful of short runs with loose floors, for a test command
    #[arg(long, conflicts_with_all = ["quick", "page", "workload"])]
    smoke: bool,
    /// Put what is measured into this page, with plots; what is not measured now stays as it was measured last
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = PAGE)]
    pub(crate) page: Option<PathBuf>,
    /// Only these
    #[arg(long, value_delimiter = ',')]
    workload: Vec<What>,
    /// Only contestants whose name contains one of these; such figures are not for a page
    #[arg(long, value_name = "TEXT", value_delimiter = ',', conflicts_with = "page")]
    only: Vec<String>,
    /// Numbers of clients, instead of 1, 16, 64 and 256
    #[arg(long, value_delimiter = ',')]
    clients: Vec<usize>,
    /// Rounds, instead of 5
    #[arg(long)]
    rounds: Option<usize>,
    /// How long one turn of one contestant lasts, instead of 2
    #[arg(long)]
    seconds: Option<f64>,
    /// Only do this piece of work in the core, for a counter of instructions
    #[arg(long, hide = true)]
    pub(crate) instructions: Option<Piece>,
}

/// What can be asked for by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum What {
    /// Acquire and release locks that nobody else wants
    Cycle,
    /// All wait for the same lock and release it at once
    HandOff,
    /// Renew one lock each
    Renew,
    /// Eight renewals, one cycle, one try at a lock that others want too
    Mixed,
    /// Memory of held locks, and the time to be ready again
    Held,
    /// JSON over HTTP, against an empty handler
    Http,
    /// Cost beside many locks, sessions and waiters
    Growth,
    /// Latency while a snapshot of a million locks is made
    Snapshot,
    /// A thousand writers of one database row
    Shield,
}

/// What is measured.
pub(crate) struct Plan {
    pub(crate) contests: Vec<Contest>,
    /// What else is measured.
    pub(crate) extras: Vec<Extra>,
    pub(crate) rounds: usize,
    /// How long one turn of one contestant lasts.
    pub(crate) turn: Duration,
    pub(crate) smoke: bool,
}

impl Plan {
    /// The parts of the plan, each with the number of threads that its load comes from. That of cycles and hand-offs is one, as
    /// that of `leasehold bench`: it leaves the cores to what is measured. What each contestant gains or loses by it stands on
    /// the page. Renewals have one for each core, without which some peers lost more than a tenth.
    pub(crate) fn by_load_threads(self) -> impl Iterator<Item = (usize, Self)> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let Self { contests, extras, rounds, turn, smoke } = self;
        let (takes, others): (Vec<_>, Vec<_>) =
            contests.into_iter().partition(|contest| has_one_load_thread(contest.workload));
        let plan = move |contests, extras| Self { contests, extras, rounds, turn, smoke };
        let parts = [(1, plan(takes, Vec::new())), (cores, plan(others, extras))];
        parts.into_iter().filter(|(_, plan)| !plan.contests.is_empty() || !plan.extras.is_empty())
    }
}

fn has_one_load_thread(workload: Workload) -> bool {
    matches!(workload, Workload::Cycle | Workload::Handoff)
}

/// What is no contest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    Held,
    Http,
    Growth,
    Snapshot,
    Shield,
}

/// One workload at one number of clients, and who takes turns.
pub(crate) struct Contest {
    pub(crate) group: Group,
    pub(crate) workload: Workload,
    pub(crate) clients: usize,
    pub(crate) contestants: Vec<Contestant>,
}

impl Args {
    /// What is meant.
    pub(crate) fn plan(&self) -> Plan {
        let (rounds, turn_seconds) = match (self.smoke, self.quick) {
            (true, _) => (2, 0.4),
            (_, true) => (2, 0.5),
            _ => (5, 2.0),
        };
        Plan {
            contests: self.contests(),
            extras: self.extras(),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            turn: Duration::from_secs_f64(self.seconds.unwrap_or(turn_seconds).clamp(0.1, 600.0)),
            smoke: self.smoke,
        }
    }

    fn extras(&self) -> Vec<Extra> {
        let all = [
            (Extra::Held, What::Held),
            (Extra::Http, What::Http),
            (Extra::Growth, What::Growth),
            (Extra::Snapshot, What::Snapshot),
            (Extra::Shield, What::Shield),
        ];
        let contests_alone = self.smoke || !self.only.is_empty();
        let wanted = all.into_iter().filter(|(_, what)| self.wants(*what) && !contests_alone);
        wanted.map(|(extra, _)| extra).collect()
    }

    /// Group after group, so that what one needs is not started anew for each number of clients.
    fn contests(&self) -> Vec<Contest> {
        let all = [
            (Workload::Cycle, What::Cycle),
            (Workload::Handoff, What::HandOff),
            (Workload::Renew, What::Renew),
            (Workload::Mixed, What::Mixed),
        ];
        let wanted: Vec<_> =
            all.into_iter().filter(|(_, what)| self.wants(*what)).map(|(workload, _)| workload).collect();
        let groups = if self.smoke { &[Group::Embedded][..] } else { &Group::ALL };
        let each = groups.iter().flat_map(|group| wanted.iter().map(move |workload| (*group, *workload)));
        let contests = each.flat_map(|(group, workload)| self.at_each_number(group, workload));
        contests.filter(|contest| !contest.contestants.is_empty()).collect()
    }

    fn at_each_number(&self, group: Group, workload: Workload) -> Vec<Contest> {
        let usual = if self.smoke { &[64][..] } else { &[1, 16, 64, 256] };
        let numbers = if self.clients.is_empty() { usual } else { &self.clients };
        let contest = |&clients: &usize| {
            let all = group.contestants(workload, clients).into_iter();
            Contest { group, workload, clients, contestants: all.filter(|who| self.allows(*who)).collect() }
        };
        numbers.iter().map(contest).collect()
    }

    fn wants(&self, what: What) -> bool {
        match self.smoke {
            true => what == What::Cycle,
            false => self.workload.is_empty() || self.workload.contains(&what),
        }
    }

    fn allows(&self, who: Contestant) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|text| who.name().contains(text.as_str()));
        let in_smoke = matches!(who, Contestant::Embedded | Contestant::Etcd | Contestant::Redis);
        named && (in_smoke || !self.smoke)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn nothing_is_lost_when_a_plan_is_parted() {
        let plan = || Args::parse_from(["leasehold-bench"]).plan();
        let (contests, extras) = (plan().contests.len(), plan().extras.len());
        let parts: Vec<_> = plan().by_load_threads().collect();
        let [(1, takes), (_, others)] = &parts[..] else {
            panic!("there are two parts, the first of one thread")
        };
        assert!(takes.contests.iter().all(|contest| has_one_load_thread(contest.workload)));
        assert!(!others.contests.iter().any(|contest| has_one_load_thread(contest.workload)));
        assert_eq!(takes.contests.len() + others.contests.len(), contests);
        assert_eq!(takes.extras.len() + others.extras.len(), extras);
    }
}
