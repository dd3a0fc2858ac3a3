//! What was measured, in a form that is kept: parts can be measured on different occasions and still make one page.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::contestant::Contestant;
use crate::group::Group;
use crate::growth::Growth;
use crate::held::Held;
use crate::http::HttpFigures;
use crate::shield::Shield;
use crate::snapshot::Snapshots;
use crate::summary::Summary;
use crate::workload::Workload;

/// Everything on the page, in the page's order.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) parts: Vec<Part>,
}

/// One part, and on which occasion it was measured.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) made: Occasion,
    pub(crate) figures: PartFigures,
}

/// When, where and how.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Occasion {
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) rounds: usize,
    pub(crate) turn_seconds: f64,
}

/// The figures of a part.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum PartFigures {
    Contest(ContestFigures),
    Held(Vec<Held>),
    Http(HttpFigures),
    Growth(Growth),
    Shield(Shield),
    Snapshots(Snapshots),
}

/// One workload at one number of clients, by those of one group.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ContestFigures {
    pub(crate) group: Group,
    pub(crate) workload: Workload,
    pub(crate) clients: usize,
    pub(crate) results: Vec<(Contestant, Summary)>,
    /// A durable write of the same disk, in the same rounds.
    pub(crate) disk: Option<Summary>,
    /// Who did not get to the end, and why.
    pub(crate) failed: Vec<(Contestant, String)>,
}

impl ContestFigures {
    /// What a contestant reached.
    pub(crate) fn of(&self, who: Contestant) -> Option<&Summary> {
        self.results.iter().find(|(other, _)| *other == who).map(|(_, summary)| summary)
    }
}

impl PartFigures {
    /// The place of its table on the page.
    fn table(&self) -> (usize, usize, usize) {
        match self {
            Self::Contest(contest) => (0, contest.workload as usize, contest.clients),
            Self::Held(_) => (1, 0, 0),
            Self::Http(_) => (2, 0, 0),
            Self::Growth(_) => (3, 0, 0),
            Self::Snapshots(_) => (4, 0, 0),
            Self::Shield(_) => (5, 0, 0),
        }
    }

    /// The place in its table; what has the same place replaces what was measured before.
    fn place(&self) -> ((usize, usize, usize), Option<Group>) {
        let group = if let Self::Contest(contest) = self { Some(contest.group) } else { None };
        (self.table(), group)
    }
}

impl Figures {
    /// Those that were kept; none yet if there is no such file.
    pub(crate) fn load(file: &Path) -> anyhow::Result<Self> {
        match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is not of this version; remove it", file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    /// Keeps them.
    pub(crate) fn store(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
    }

    /// Takes a part in, in its place.
    pub(crate) fn add(&mut self, part: Part) {
        let place = part.figures.place();
        self.parts.retain(|other| other.figures.place() != place);
        self.parts.push(part);
        self.parts.sort_by_key(|part| part.figures.place());
    }

    /// The parts of each table.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &[Part]> {
        self.parts.chunk_by(|one, next| one.figures.table() == next.figures.table())
    }

    /// All contests.
    pub(crate) fn contests(&self) -> impl Iterator<Item = &ContestFigures> {
        contests(&self.parts)
    }

    /// The part that `of` recognises.
    pub(crate) fn find<'a, T>(&'a self, of: impl FnMut(&'a PartFigures) -> Option<&'a T>) -> Option<&'a T> {
        self.parts.iter().map(|part| &part.figures).find_map(of)
    }

    /// The contest in which all of these took turns: figures of different contests are not compared.
    pub(crate) fn contest(
        &self,
        (workload, clients): (Workload, usize),
        who: &[Contestant],
    ) -> Option<&ContestFigures> {
        let mut contests =
            self.contests().filter(|contest| contest.workload == workload && contest.clients == clients);
        contests.find(|contest| who.iter().all(|who| contest.of(*who).is_some()))
    }
}

/// The contests among these parts.
pub(crate) fn contests(parts: &[Part]) -> impl Iterator<Item = &ContestFigures> {
    parts.iter().filter_map(|part| match &part.figures {
        PartFigures::Contest(contest) => Some(contest),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(clients: usize, group: Group, date: &str) -> Part {
        let made = Occasion { date: date.to_owned(), machine: String::new(), rounds: 1, turn_seconds: 1.0 };
        let (results, failed) = (Vec::new(), Vec::new());
        let figures = PartFigures::Contest(ContestFigures {
            group,
            workload: Workload::Cycle,
            clients,
            results,
            disk: None,
            failed,
        });
        Part { made, figures }
    }

    #[test]
    fn a_part_measured_again_replaces_itself_alone() {
        let mut figures = Figures::default();
        let (etcd, embedded) = (Group::Etcd, Group::Embedded);
        let old = [contest(64, etcd, "old"), contest(1, etcd, "old"), contest(64, embedded, "old")];
        for part in old.into_iter().chain([contest(64, etcd, "new")]) {
            figures.add(part);
        }
        let text = serde_json::to_vec(&figures).unwrap();
        let figures: Figures = serde_json::from_slice(&text).unwrap();
        let dates: Vec<_> = figures.parts.iter().map(|part| part.made.date.as_str()).collect();
        assert_eq!(dates, ["old", "old", "new"]);
        let contests: Vec<_> = figures.contests().map(|contest| (contest.clients, contest.group)).collect();
        assert_eq!(contests, [(1, etcd), (64, embedded), (64, etcd)]);
        assert_eq!(figures.tables().map(<[Part]>::len).collect::<Vec<_>>(), [1, 2]);
    }
}
