//! As typed, and as meant.

use std::path::PathBuf;
use std::time::Duration;

use crate::engines::Contestant;
use crate::instructions::Piece;
use crate::workload::Workload;

/// Measures Leasehold and its peers side by side.
#[derive(clap::Parser, Debug)]
#[command(name = "leasehold-bench")]
pub(crate) struct Args {
    /// Fewer and shorter rounds: less than ten minutes
    #[arg(long)]
    quick: bool,
    /// A handful of short runs with loose floors, for a test command
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Write the page with tables and plots to this Markdown file; plots lie beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Only workloads whose name contains this; also `held`, `http`, `growth`, `shield` or `snapshot`
    #[arg(long, value_name = "TEXT")]
    workload: Option<String>,
    /// Only contestants whose name contains one of these
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of clients, instead of 1, 16, 64 and 256
    #[arg(long, value_delimiter = ',')]
    clients: Vec<usize>,
    /// Rounds, instead of 7
    #[arg(long)]
    rounds: Option<usize>,
    /// Only do this piece of work in the core, for a counter of instructions
    #[arg(long, hide = true)]
    pub(crate) instructions: Option<Piece>,
}

/// What is measured.
pub(crate) struct Plan {
    pub(crate) contests: Vec<Contest>,
    pub(crate) rounds: usize,
    /// How long one turn of one contestant lasts.
    pub(crate) turn: Duration,
    /// Locks that are held at once for the figures about memory and start; 0: those are left out.
    pub(crate) held: usize,
    /// What else is measured.
    pub(crate) extras: Vec<Extra>,
    pub(crate) smoke: bool,
}

/// What is no contest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    Http,
    Growth,
    Shield,
    Snapshot,
}

impl Extra {
    const ALL: [(Self, &str); 4] = [
        (Self::Http, "http"),
        (Self::Growth, "growth"),
        (Self::Shield, "shield"),
        (Self::Snapshot, "snapshot"),
    ];
}

/// One workload at one number of clients, and who takes part.
pub(crate) struct Contest {
    pub(crate) workload: Workload,
    pub(crate) clients: usize,
    pub(crate) contestants: Vec<Contestant>,
}

impl Args {
    /// What is meant.
    pub(crate) fn plan(&self) -> Plan {
        let (rounds, turn_ms, held) = match (self.smoke, self.quick) {
            (true, _) => (2, 400, 0),
            (_, true) => (5, 1_000, 200_000),
            _ => (7, 4_000, 200_000),
        };
        let everything = self.workload.is_none() && self.only.is_empty();
        Plan {
            contests: self.contests(),
            rounds: self.rounds.unwrap_or(rounds),
            turn: Duration::from_millis(turn_ms),
            held: if everything || self.workload.as_deref() == Some("held") { held } else { 0 },
            extras: self.extras(everything),
            smoke: self.smoke,
        }
    }

    fn extras(&self, everything: bool) -> Vec<Extra> {
        let named = |name: &str| self.workload.as_deref() == Some(name);
        let wanted = |(_, name): &(Extra, &str)| named(name) || (everything && !self.smoke);
        Extra::ALL.into_iter().filter(wanted).map(|(extra, _)| extra).collect()
    }

    fn contests(&self) -> Vec<Contest> {
        let usual = if self.smoke { &[64][..] } else { &[1, 16, 64, 256] };
        let clients = if self.clients.is_empty() { usual } else { &self.clients };
        let mut contests = Vec::new();
        for workload in Workload::ALL.into_iter().filter(|workload| self.wants(workload.name())) {
            // Waiters of one lock are a crowd by nature; the others are worth a curve.
            let single = workload != Workload::Cycle;
            for &clients in
                clients.iter().filter(|clients| !single || **clients == 64 || self.clients.len() == 1)
            {
                let contestants = Contestant::ALL.into_iter().filter(|who| self.takes_part(*who, workload));
                contests.push(Contest { workload, clients, contestants: contestants.collect() });
            }
        }
        contests
    }

    fn wants(&self, workload: &str) -> bool {
        match &self.workload {
            Some(text) => workload.contains(text.as_str()),
            None => !self.smoke || workload == "cycle",
        }
    }

    fn takes_part(&self, who: Contestant, workload: Workload) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|text| who.name().contains(text.as_str()));
        let in_smoke =
            !self.smoke || matches!(who, Contestant::Embedded | Contestant::Etcd | Contestant::Redis);
        named && in_smoke && who.can(workload)
    }
}
