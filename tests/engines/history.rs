//! What clients asked and were told, and whether it can be true. That is for the history checker to say; see
//! [`not_as_told`] for what only a drill can know.
//!
//! Times are those of one clock of the test process, so that "was answered before the other was asked" means something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_history::{Answer as Recorded, Call, Mode, Record};
use leasehold_tests::{Answer, Stopwatch, Story, id};

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
    /// Done; with the token, what was promised, and the epoch of the node that decided, where the client shows it.
    Done { token: u64, ttl_ms: u64, epoch: Option<u64> },
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
        self.note(asked, (resource, lease), at, told.clone());
        told
    }

    /// Writes down what was asked at that time and has just been answered.
    pub(crate) fn note(&self, asked: Asked, (resource, lease): (&str, &str), at: Duration, told: Told) {
        if asked == Asked::Acquire && matches!(told, Told::Done { .. }) {
            self.grants.fetch_add(1, Ordering::Relaxed);
        }
        let (resource, lease) = (resource.to_owned(), lease.to_owned());
        let entry = Entry { asked, resource, lease, at, answered: self.now(), told };
        self.entries.lock().unwrap().push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// How many grants were acknowledged.
    pub(crate) fn grants(&self) -> usize {
        self.grants.load(Ordering::Relaxed)
    }

    /// The newest epoch that served anybody; 0 if none has.
    pub(crate) fn newest_epoch(&self) -> u64 {
        self.entries().iter().filter_map(Entry::epoch).max().unwrap_or_default()
    }

    /// All of it can be true, given what is held in the end.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn judge(&self, held: &BTreeMap<String, u64>) {
        let found = self.violations(held);
        assert!(found.is_empty(), "PROMISE BROKEN: {found:#?}");
    }

    /// Everything that cannot be true, given what is held in the end.
    pub(crate) fn violations(&self, held: &BTreeMap<String, u64>) -> Vec<String> {
        let (entries, story) = (self.entries(), Story::begin("drill"));
        let leases = leases(&entries);
        entries.iter().for_each(|entry| entry.write(&story));
        let end = entries.iter().map(|entry| entry.answered).max().unwrap_or_default().max(self.now());
        write_the_end(&story, &leases, held, micros(end));
        let mut found: Vec<String> = story.verdict().err().into_iter().collect();
        found.extend(not_as_told(&leases, held));
        found.extend(epochs_mixed(&entries));
        found.extend(ended_early(&entries));
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
        (200, Some(token), Some(epoch)) => {
            Told::Done { token, ttl_ms: body["ttlMs"].as_u64().unwrap_or(0), epoch: Some(epoch) }
        }
        (200, ..) if body["acquired"] == false => Told::Held,
        (410 | 404, ..) => Told::Gone(body["reason"].as_str().unwrap_or("unknown").to_owned()),
        _ if body["sideEffects"] == "none" => Told::Failed(answer.code()),
        (503, ..) => Told::Unknown,
        _ => panic!("an answer that nobody expects: {} {}", answer.status, answer.body),
    }
}

impl Entry {
    /// The two records of it. Whoever asks about a lease waits for the answer before it asks again: the lease's name will do
    /// for the client's.
    fn write(&self, story: &Story) {
        let (op, lease) = (story.next_op(), id(&self.lease));
        let call = match self.asked {
            Asked::Acquire => Call::Acquire { resource: self.resource.as_str().into(), lease, session: None },
            Asked::Renew => Call::Renew { life: lease },
            Asked::Release => Call::Release { lease },
        };
        let answer = match (self.asked, &self.told) {
            (Asked::Acquire, Told::Done { token, ttl_ms, .. }) => {
                Recorded::Granted { token: *token, ttl_ms: *ttl_ms }
            }
            (Asked::Renew, Told::Done { ttl_ms, .. }) => Recorded::Renewed { ttl_ms: *ttl_ms },
            (Asked::Release, Told::Done { token, .. }) => Recorded::Released { token: *token },
            (_, Told::Held) => Recorded::NotGranted,
            (_, Told::Gone(_)) => Recorded::Refused,
            (_, Told::Failed(_)) => Recorded::Failed,
            (_, Told::Unknown) => Recorded::Unknown,
        };
        story.add(&Record::Invoke { at: micros(self.at), op, client: self.lease.as_str().into(), call });
        story.add(&Record::Answer { at: micros(self.answered), op, epoch: self.epoch(), answer });
    }

    fn epoch(&self) -> Option<u64> {
        match self.told {
            Told::Done { epoch, .. } => epoch,
            _ => None,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

/// What is known of one lease.
#[derive(Clone, Debug)]
struct Lease {
    id: String,
    resource: String,
    tokens: BTreeSet<u64>,
    first_granted: Option<Duration>,
    release_asked: Option<Duration>,
    gone: Option<String>,
    may_be_held: bool,
}

fn leases(entries: &[Entry]) -> Vec<Lease> {
    let mut leases: BTreeMap<&str, Lease> = BTreeMap::new();
    for entry in entries {
        let lease = leases.entry(&entry.lease).or_insert_with(|| Lease {
            id: entry.lease.clone(),
            resource: entry.resource.clone(),
            tokens: BTreeSet::new(),
            first_granted: None,
            release_asked: None,
            gone: None,
            may_be_held: false,
        });
        if let Told::Done { token, .. } = entry.told {
            lease.tokens.insert(token);
        }
        match (entry.asked, &entry.told) {
            (Asked::Acquire, Told::Done { .. }) => {
                let granted = lease.first_granted.unwrap_or(entry.answered).min(entry.answered);
                lease.first_granted = Some(granted);
            }
            (Asked::Acquire, Told::Unknown) => lease.may_be_held = true,
            (Asked::Release, _) => {
                lease.release_asked = Some(lease.release_asked.unwrap_or(entry.at).min(entry.at));
            }
            (_, Told::Gone(why)) => lease.gone = Some(why.clone()),
            _ => {}
        }
    }
    leases.into_values().collect()
}

/// Between its grant and the asking to give it back a resource is one lease's; what is held now is what was seen.
fn write_the_end(story: &Story, leases: &[Lease], held: &BTreeMap<String, u64>, now: u64) {
    for lease in leases {
        let (Some(from), Some(token)) = (lease.first_granted, lease.tokens.first().copied()) else {
            continue;
        };
        let (from, until) = (micros(from), lease.release_asked.map_or(now, micros));
        let (client, resource) = (lease.id.as_str().into(), lease.resource.as_str().into());
        let mode = Mode::Exclusive;
        story.add(&Record::Held { at: now, from, until, client, resource, token, mode, permit: None });
    }
    let resources: BTreeSet<&str> = leases.iter().map(|lease| lease.resource.as_str()).collect();
    for resource in resources {
        let (op, call) = (story.next_op(), Call::Read { resource: resource.into() });
        let tokens = held.get(resource).copied().into_iter().collect();
        story.add(&Record::Invoke { at: now, op, client: "looking".into(), call });
        story.add(&Record::Answer { at: now, op, epoch: None, answer: Recorded::Holders { tokens } });
    }
}

/// What a history without commits cannot show. S2: a renewal tells the token of its lease. S5: nobody took away what was to
/// be kept for hours. S6: a resource of which every acquire was said to have failed is free; that nobody else asked for it
/// only this drill knows.
fn not_as_told(leases: &[Lease], held: &BTreeMap<String, u64>) -> Vec<String> {
    let is_kept = |lease: &&Lease| lease.first_granted.is_some() && lease.release_asked.is_none();
    let ended = leases.iter().filter(is_kept).filter(|lease| lease.gone.is_some());
    let mut found: Vec<String> = ended.map(|lease| format!("S5: acknowledged and lost: {lease:?}")).collect();
    let several = leases.iter().filter(|lease| lease.tokens.len() > 1);
    found.extend(several.map(|lease| format!("S2: told of several tokens: {lease:?}")));
    let asked_for: BTreeSet<&str> = leases
        .iter()
        .filter(|lease| lease.first_granted.is_some() || lease.may_be_held)
        .map(|lease| lease.resource.as_str())
        .collect();
    let failed = leases.iter().filter(|one| !asked_for.contains(one.resource.as_str()));
    for lease in failed.filter(|one| held.contains_key(&one.resource)) {
        found.push(format!("S6: said to have failed, and held: {lease:?}"));
    }
    found
}

/// S17: one node grants at a time. Tokens are given out in the order of the journal, so those of an epoch are all smaller
/// than those of the next one. A lease that was asked for twice says nothing: the node that answers need not be the one
/// that granted.
fn epochs_mixed(entries: &[Entry]) -> Vec<String> {
    let acquires = || entries.iter().filter(|entry| entry.asked == Asked::Acquire);
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    acquires().for_each(|entry| *asked.entry(&entry.lease).or_default() += 1);
    let mut granted: Vec<(u64, u64)> = acquires()
        .filter(|entry| asked[entry.lease.as_str()] == 1)
        .filter_map(|entry| match entry.told {
            Told::Done { token, epoch: Some(epoch), .. } => Some((token, epoch)),
            _ => None,
        })
        .collect();
    granted.sort_unstable();
    let mixed = |pair: &[(u64, u64)]| {
        let ((token, epoch), (next, older)) = (pair[0], pair[1]);
        (older < epoch).then(|| {
            format!("S17: token {next} was granted in epoch {older}, after {token} in epoch {epoch}")
        })
    };
    granted.windows(2).filter_map(mixed).collect()
}

/// S9: a client that renews in time keeps its lease, whatever happens to the nodes; also one that gives it back later.
fn ended_early(entries: &[Entry]) -> Vec<String> {
    let mut promised: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries {
        let lease = entry.lease.as_str();
        match (entry.asked, &entry.told) {
            (Asked::Release, _) => {
                promised.remove(lease);
            }
            (_, Told::Done { ttl_ms, .. }) => {
                promised.insert(lease, entry.at + Duration::from_millis(*ttl_ms));
            }
            (_, Told::Gone(_)) if promised.get(lease).is_some_and(|until| entry.answered < *until) => {
                found.push(format!("S9: ended before its time: {entry:?}"));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(asked: Asked, lease: &str, (at, answered): (u64, u64), told: Told) -> Entry {
        let [at, answered] = [at, answered].map(Duration::from_millis);
        let lease = format!("{:032x}", lease.as_bytes()[0]);
        Entry { asked, resource: "r".into(), lease, at, answered, told }
    }

    fn done(token: u64, epoch: u64) -> Told {
        Told::Done { token, ttl_ms: 3_600_000, epoch: Some(epoch) }
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
        let given_back_late = entry(Asked::Release, "a", (5, 6), Told::Unknown);
        let both = [granted("a", (0, 1), 1), granted("b", (2, 3), 2), given_back_late];
        finds("S10", &both, &[("r", 2)]);
        finds("S5", &[granted("a", (0, 1), 1)], &[]);
        let failed = Told::Failed("store_unavailable".into());
        finds("S6", &[entry(Asked::Acquire, "a", (0, 1), failed)], &[("r", 1)]);
        let zombie = [granted("a", (0, 1), 1), entry(Asked::Renew, "a", (2, 3), done(1, 0))];
        finds("S17", &zombie, &[("r", 1)]);
        let two = [granted("a", (0, 9), 2), entry(Asked::Acquire, "b", (0, 9), done(1, 2))];
        finds("S17: token", &two, &[]);
        let renewed = [granted("a", (0, 1), 1), entry(Asked::Renew, "a", (2, 3), done(2, 1))];
        finds("S2", &renewed, &[("r", 1)]);
        let gone = [granted("a", (0, 1), 1), entry(Asked::Renew, "a", (2, 3), Told::Gone("expired".into()))];
        finds("S5", &gone, &[("r", 1)]);
        finds("S9", &gone, &[("r", 1)]);
    }

    #[test]
    fn a_lease_that_nobody_renewed_in_time_may_end() {
        let granted = Told::Done { token: 1, ttl_ms: 15_000, epoch: Some(1) };
        let entries = [
            entry(Asked::Acquire, "a", (0, 1), granted),
            entry(Asked::Renew, "a", (20_000, 20_001), Told::Gone("expired".into())),
            entry(Asked::Release, "a", (20_002, 20_003), Told::Gone("expired".into())),
        ];
        assert_eq!(violations(&entries, &[]), Vec::<String>::new());
    }
}
