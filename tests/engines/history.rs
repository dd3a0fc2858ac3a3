//! What clients asked and were told, and whether it can be true (S2, S3, S5, S6, S11, S17 and S1 as clients see it).
//!
//! Times are those of one clock of the test process, so that "was answered before the other was asked" means something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_tests::{Answer, Stopwatch};

/// What was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Acquire,
    Renew,
    Release,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// Done; with the token and the epoch of the node that decided.
    Done { token: u64, epoch: u64 },
    /// A lawful no: somebody else has it.
    Held,
    /// The lease has ended, it says, for this reason.
    Gone(String),
    /// It did not happen, it says.
    Failed(String),
    /// No answer, or one that says that nobody knows.
    Unknown,
}

/// One question with its answer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) asked: Asked,
    pub(crate) resource: String,
    pub(crate) lease: String,
    pub(crate) at: Duration,
    pub(crate) answered: Duration,
    pub(crate) told: Told,
}

/// Everything that clients of one drill were told.
pub(crate) struct History {
    watch: Stopwatch,
    entries: Mutex<Vec<Entry>>,
    grants: AtomicUsize,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { watch: Stopwatch::start(), entries: Mutex::default(), grants: AtomicUsize::new(0) }
    }

    pub(crate) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Asks, and writes down what came of it.
    pub(crate) fn ask(
        &self,
        asked: Asked,
        (resource, lease): (&str, &str),
        ask: impl FnOnce() -> std::io::Result<Answer>,
    ) -> Told {
        let at = self.now();
        let told = ask().map_or(Told::Unknown, |answer| told(asked, &answer));
        if asked == Asked::Acquire && matches!(told, Told::Done { .. }) {
            self.grants.fetch_add(1, Ordering::Relaxed);
        }
        let (resource, lease) = (resource.to_owned(), lease.to_owned());
        let entry = Entry { asked, resource, lease, at, answered: self.now(), told: told.clone() };
        self.entries.lock().unwrap().push(entry);
        told
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// How many grants were acknowledged.
    pub(crate) fn grants(&self) -> usize {
        self.grants.load(Ordering::Relaxed)
    }

    /// Everything that cannot be true, given what is held in the end.
    pub(crate) fn violations(&self, held: &BTreeMap<String, u64>) -> Vec<String> {
        let entries = self.entries();
        let leases = leases(&entries);
        let mut found = Vec::new();
        found.extend(tokens_of_two(&leases));
        found.extend(out_of_order(&leases));
        found.extend(epochs_back(&entries));
        found.extend(two_holders(&leases));
        found.extend(not_as_told(&leases, held));
        found
    }
}

fn told(asked: Asked, answer: &Answer) -> Told {
    let body = answer.json();
    let epoch = answer.header("leasehold-epoch").and_then(|text| text.rsplit('/').next()?.parse().ok());
    let token = match asked {
        Asked::Renew => body["locks"][0]["fencingToken"].as_u64(),
        Asked::Acquire | Asked::Release => body["fencingToken"].as_u64(),
    };
    match (answer.status, token, epoch) {
        (200, Some(token), Some(epoch)) => Told::Done { token, epoch },
        (200, ..) if body["acquired"] == false => Told::Held,
        (410 | 404, ..) => Told::Gone(body["reason"].as_str().unwrap_or("unknown").to_owned()),
        _ if body["sideEffects"] == "none" => Told::Failed(answer.code()),
        (503, ..) => Told::Unknown,
        _ => panic!("an answer that nobody expects: {} {}", answer.status, answer.body),
    }
}

impl Entry {
    fn token(&self) -> Option<u64> {
        match self.told {
            Told::Done { token, .. } => Some(token),
            _ => None,
        }
    }
}

/// What is known of one lease.
#[derive(Clone, Debug, Default)]
struct Lease {
    id: String,
    resource: String,
    tokens: BTreeSet<u64>,
    first_asked: Duration,
    first_granted: Option<Duration>,
    release_asked: Option<Duration>,
    released: bool,
    gone: Option<String>,
    may_be_held: bool,
}

fn leases(entries: &[Entry]) -> Vec<Lease> {
    let mut leases: BTreeMap<&str, Lease> = BTreeMap::new();
    for entry in entries {
        let lease = leases.entry(&entry.lease).or_insert_with(|| Lease {
            id: entry.lease.clone(),
            resource: entry.resource.clone(),
            first_asked: entry.at,
            ..Lease::default()
        });
        lease.first_asked = lease.first_asked.min(entry.at);
        lease.tokens.extend(entry.token());
        match (entry.asked, &entry.told) {
            (Asked::Acquire, Told::Done { .. }) => {
                let granted = lease.first_granted.unwrap_or(entry.answered).min(entry.answered);
                lease.first_granted = Some(granted);
            }
            (Asked::Acquire, Told::Unknown) => lease.may_be_held = true,
            (Asked::Release, told) => {
                lease.release_asked = Some(lease.release_asked.unwrap_or(entry.at).min(entry.at));
                lease.released |= matches!(told, Told::Done { .. });
            }
            (_, Told::Gone(why)) => lease.gone = Some(why.clone()),
            _ => {}
        }
    }
    leases.into_values().collect()
}

/// S2: a token is one lease's, and a lease has one token.
fn tokens_of_two(leases: &[Lease]) -> Vec<String> {
    let mut owners: BTreeMap<u64, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for lease in leases {
        if lease.tokens.len() > 1 {
            found.push(format!("S2: lease {} was told of several tokens: {:?}", lease.id, lease.tokens));
        }
        for token in &lease.tokens {
            if let Some(other) = owners.insert(*token, &lease.id) {
                found.push(format!("S2: token {token} was given to {other} and to {}", lease.id));
            }
        }
    }
    found
}

/// S3: what was acknowledged before something else was asked for has the smaller token.
fn out_of_order(leases: &[Lease]) -> Vec<String> {
    let granted: Vec<(Duration, Duration, u64)> = leases
        .iter()
        .filter_map(|one| Some((one.first_asked, one.first_granted?, *one.tokens.first()?)))
        .collect();
    let (mut by_asked, mut by_answered) = (granted.clone(), granted);
    by_asked.sort_unstable();
    by_answered.sort_unstable_by_key(|(_, answered, _)| *answered);
    let (mut next, mut largest, mut found) = (0, 0, Vec::new());
    for (asked, _, token) in by_asked {
        while next < by_answered.len() && by_answered[next].1 < asked {
            largest = largest.max(by_answered[next].2);
            next += 1;
        }
        if token <= largest {
            found.push(format!("S3: token {token} was asked for at {asked:?}, after {largest} was told"));
        }
    }
    found
}

/// S11, S17: after somebody was served under an epoch, nobody who asks is served under an older one.
fn epochs_back(entries: &[Entry]) -> Vec<String> {
    let epoch = |entry: &Entry| match entry.told {
        Told::Done { epoch, .. } => Some(epoch),
        _ => None,
    };
    let mut by_asked: Vec<&Entry> = entries.iter().filter(|one| epoch(one).is_some()).collect();
    let mut by_answered = by_asked.clone();
    by_asked.sort_by_key(|entry| entry.at);
    by_answered.sort_by_key(|entry| entry.answered);
    let (mut next, mut newest, mut found) = (0, None, Vec::new());
    for entry in by_asked {
        while next < by_answered.len() && by_answered[next].answered < entry.at {
            newest = newest.max(epoch(by_answered[next]));
            next += 1;
        }
        if epoch(entry) < newest {
            found.push(format!(
                "S11, S17: served by an old epoch although {newest:?} served before: {entry:?}"
            ));
        }
    }
    found
}

/// S1 as clients see it: between its grant and the asking to give it back a resource is one lease's.
fn two_holders(leases: &[Lease]) -> Vec<String> {
    let mut held: Vec<(&str, Duration, Duration, &Lease)> = leases
        .iter()
        .filter_map(|one| {
            let until = one.release_asked.unwrap_or(Duration::MAX);
            Some((one.resource.as_str(), one.first_granted?, until, one))
        })
        .filter(|(_, from, until, _)| from < until)
        .collect();
    held.sort_by_key(|(resource, from, ..)| (*resource, *from));
    let overlap = |pair: &[(&str, Duration, Duration, &Lease)]| {
        let ((resource, _, until, one), (next, from, _, other)) = (pair[0], pair[1]);
        (resource == next && from < until)
            .then(|| format!("S1: {resource} was held by {one:?} and by {other:?} at the same time"))
    };
    held.windows(2).filter_map(overlap).collect()
}

/// S5, S6: what was acknowledged is there, what was given back or said to have failed is not.
fn not_as_told(leases: &[Lease], held: &BTreeMap<String, u64>) -> Vec<String> {
    let mut found = Vec::new();
    let tokens: BTreeMap<u64, &str> = held.iter().map(|(name, token)| (*token, name.as_str())).collect();
    let mut asked_for: BTreeSet<&str> = BTreeSet::new();
    for lease in leases {
        let token = lease.tokens.first().copied();
        let is_there = token.is_some_and(|token| tokens.get(&token) == Some(&lease.resource.as_str()));
        let is_kept = lease.first_granted.is_some() && lease.release_asked.is_none();
        if is_kept && (!is_there || lease.gone.is_some()) {
            found.push(format!("S5: acknowledged and lost: {lease:?}"));
        }
        if lease.released && is_there {
            found.push(format!("S5: given back and still held: {lease:?}"));
        }
        if lease.first_granted.is_some() || lease.may_be_held {
            asked_for.insert(&lease.resource);
        }
    }
    let failed = leases.iter().filter(|one| !asked_for.contains(one.resource.as_str()));
    for lease in failed.filter(|one| held.contains_key(&one.resource)) {
        found.push(format!("S6: said to have failed, and held: {lease:?}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(asked: Asked, lease: &str, (at, answered): (u64, u64), told: Told) -> Entry {
        let [at, answered] = [at, answered].map(Duration::from_millis);
        Entry { asked, resource: "r".into(), lease: lease.into(), at, answered, told }
    }

    fn done(token: u64, epoch: u64) -> Told {
        Told::Done { token, epoch }
    }

    fn violations(entries: &[Entry], held: &[(&str, u64)]) -> Vec<String> {
        let history = History::new();
        *history.entries.lock().unwrap() = entries.to_vec();
        history.violations(&held.iter().map(|(name, token)| ((*name).to_owned(), *token)).collect())
    }

    #[track_caller]
    fn finds(rule: &str, entries: &[Entry], held: &[(&str, u64)]) {
        let found = violations(entries, held);
        assert!(found.iter().any(|text| text.starts_with(rule)), "{rule} not in {found:?}");
    }

    #[test]
    fn a_true_history_is_believed() {
        let entries = [
            entry(Asked::Acquire, "a", (0, 1), done(1, 1)),
            entry(Asked::Renew, "a", (2, 3), done(1, 1)),
            entry(Asked::Release, "a", (4, 9), Told::Unknown),
            entry(Asked::Acquire, "b", (5, 8), done(2, 2)),
        ];
        assert_eq!(violations(&entries, &[("r", 2)]), Vec::<String>::new());
    }

    #[test]
    fn every_rule_can_be_broken() {
        let granted = |lease, times, token| entry(Asked::Acquire, lease, times, done(token, 1));
        finds("S2", &[granted("a", (0, 1), 1), granted("b", (2, 3), 1)], &[]);
        finds("S3", &[granted("a", (0, 1), 2), granted("b", (2, 3), 1)], &[]);
        finds("S1", &[granted("a", (0, 1), 1), granted("b", (2, 3), 2)], &[]);
        finds("S5", &[granted("a", (0, 1), 1)], &[]);
        let failed = Told::Failed("store_unavailable".into());
        finds("S6", &[entry(Asked::Acquire, "a", (0, 1), failed)], &[("r", 1)]);
        let zombie = [granted("a", (0, 1), 1), entry(Asked::Renew, "a", (2, 3), done(1, 0))];
        finds("S11", &zombie, &[("r", 1)]);
        let gone = [granted("a", (0, 1), 1), entry(Asked::Renew, "a", (2, 3), Told::Gone("expired".into()))];
        finds("S5", &gone, &[("r", 1)]);
    }
}
