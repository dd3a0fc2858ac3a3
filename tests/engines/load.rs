//! Clients under whose eyes faults happen: each takes, keeps, renews and gives back, and writes down what it was told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_tests::{Answer, Http, Seed, StopOnDrop, until};
use serde_json::json;

use crate::history::{Asked, History, Told};

/// Longer than any drill.
pub(crate) const KEPT_MS: u64 = 3_600_000;
/// A live client renews this: longer than a take-over, short enough that a lost one shows.
const RENEWED_MS: u64 = 15_000;
/// Between two questions of one client: enough of them to be in the way of every fault, and few enough to be checked.
const BREATH: Duration = Duration::from_millis(4);
/// One answer; a node that cannot answer says so earlier.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);
/// All attempts together.
const PATIENCE: Duration = Duration::from_secs(120);
/// Names of what is kept.
pub(crate) const KEPT: &str = "kept/";

/// A client that knows all nodes and asks the next one when one cannot help.
pub(crate) struct Client<'a> {
    history: &'a History,
    nodes: Vec<Http>,
    at: usize,
}

impl<'a> Client<'a> {
    pub(crate) fn new(history: &'a History, nodes: &[SocketAddr], at: usize) -> Self {
        let nodes: Vec<Http> = nodes.iter().map(|node| Http::at(*node).patience(ANSWER)).collect();
        let at = at % nodes.len();
        Self { history, nodes, at }
    }

    /// The same with another patience for one answer.
    #[must_use]
    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.nodes = self.nodes.into_iter().map(|node| node.patience(patience)).collect();
        self
    }

    /// Asks one node, once.
    pub(crate) fn ask(&mut self, asked: Asked, resource: &str, lease: &str, ttl_ms: u64) -> Told {
        let http = &mut self.nodes[self.at];
        let told = self.history.ask(asked, (resource, lease), || send(http, asked, resource, lease, ttl_ms));
        if matches!(told, Told::Failed(_) | Told::Unknown) {
            self.at = (self.at + 1) % self.nodes.len();
        }
        told
    }

    /// Asks the same, of one node after the other, until it is known what came of it.
    pub(crate) fn insist(&mut self, asked: Asked, resource: &str, lease: &str, ttl_ms: u64) -> Told {
        until("an answer", PATIENCE, || match self.ask(asked, resource, lease, ttl_ms) {
            Told::Failed(_) | Told::Unknown => {
                std::thread::park_timeout(BREATH);
                None
            }
            told => Some(told),
        })
    }

    /// Takes a name nobody else wants and keeps it; whoever insists is served in the end.
    pub(crate) fn keep(&mut self, name: &str, lease: &str) -> u64 {
        match self.insist(Asked::Acquire, &format!("{KEPT}{name}"), lease, KEPT_MS) {
            Told::Done { token, .. } => token,
            told => panic!("nobody else wants {name}: {told:?}"),
        }
    }

    /// What is held under the names that are kept.
    pub(crate) fn held(&mut self) -> BTreeMap<String, u64> {
        until("a whole list", PATIENCE, || {
            self.at = (self.at + 1) % self.nodes.len();
            let (kept, hot) = (self.nodes[self.at].held(KEPT).ok()?, self.nodes[self.at].held("hot/").ok()?);
            Some(kept.into_iter().chain(hot).collect())
        })
    }
}

fn send(http: &mut Http, asked: Asked, resource: &str, lease: &str, ttl_ms: u64) -> std::io::Result<Answer> {
    match asked {
        Asked::Acquire => http.acquire(resource, lease, ttl_ms),
        Asked::Renew => http.post(&format!("/v1/locks/{lease}/renew"), &json!({})),
        Asked::Release => http.delete(&format!("/v1/locks/{lease}")),
    }
}

/// One client at work until it is told to stop.
pub(crate) fn work(mut client: Client<'_>, number: u64, mut seed: Seed, stop: &AtomicBool) {
    let mut mine = Vec::new();
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let lease = seed.uuid();
        match seed.below(10) {
            0..=4 => {
                let name = format!("{number}/{round}");
                client.keep(&name, &lease);
                mine.push((format!("{KEPT}{name}"), lease));
            }
            5 | 6 => take_or_leave(&mut client, &format!("{KEPT}{number}/{round}"), &lease, &mut mine),
            7 | 8 => contend(&mut client, &format!("hot/{}", seed.below(3)), &lease),
            _ => {
                let (Some(last), bound) = (mine.len().checked_sub(1), mine.len() as u64) else { continue };
                let (resource, lease) = &mine[seed.below(bound).min(last as u64) as usize];
                client.insist(Asked::Renew, resource, lease, KEPT_MS);
            }
        }
        std::thread::park_timeout(BREATH);
    }
}

/// Insists only while nobody knows; what is said to have failed is left at that, and must not have happened (S6).
fn take_or_leave(client: &mut Client<'_>, resource: &str, lease: &str, mine: &mut Vec<(String, String)>) {
    match client.ask(Asked::Acquire, resource, lease, KEPT_MS) {
        Told::Done { .. } => mine.push((resource.to_owned(), lease.to_owned())),
        Told::Unknown => {
            client.insist(Asked::Acquire, resource, lease, KEPT_MS);
            mine.push((resource.to_owned(), lease.to_owned()));
        }
        _ => {}
    }
}

/// Takes what others want too, renews it, gives it back.
fn contend(client: &mut Client<'_>, resource: &str, lease: &str) {
    if let Told::Done { .. } = client.insist(Asked::Acquire, resource, lease, KEPT_MS) {
        client.insist(Asked::Renew, resource, lease, KEPT_MS);
        client.insist(Asked::Release, resource, lease, KEPT_MS);
    }
}

/// A live client, whose lease must live through everything.
pub(crate) fn hold(mut client: Client<'_>, mut seed: Seed, stop: &AtomicBool) {
    let (resource, lease) = (format!("{KEPT}held"), seed.uuid());
    client.insist(Asked::Acquire, &resource, &lease, RENEWED_MS);
    while !stop.load(Ordering::Relaxed) {
        client.insist(Asked::Renew, &resource, &lease, RENEWED_MS);
        std::thread::park_timeout(Duration::from_millis(200));
    }
    client.insist(Asked::Release, &resource, &lease, RENEWED_MS);
}

/// Runs faults under the eyes of so many clients; then everything must be as it was told.
pub(crate) fn under_load(
    history: &History,
    nodes: &[SocketAddr],
    (workers, patience): (u64, Duration),
    seed: &Seed,
    faults: impl FnOnce(),
) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..workers {
            let client = Client::new(history, nodes, number as usize).patience(patience);
            let (seed, stop) = (seed.part(number), &stop);
            scope.spawn(move || work(client, number, seed, stop));
        }
        let client = Client::new(history, nodes, 1).patience(patience);
        let (holder, stop) = (seed.part(u64::MAX), &stop);
        scope.spawn(move || hold(client, holder, stop));
        faults();
    });
}

/// Waits until so many more grants were acknowledged.
pub(crate) fn await_load(history: &History, more: usize) {
    let before = history.grants();
    until("load", PATIENCE, || (history.grants() >= before + more).then_some(()));
}
