//! F6: the active node is stopped with SIGSTOP until another has taken over, and then wakes up, while clients renew
//! through it all the time. Nothing that it answers from before may be told, nothing that it decided may be committed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_tests::{Seed, StopOnDrop, until};

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::{Asked, Entry, History, Told};
use crate::load::{Client, KEPT, KEPT_MS};

const NODES: usize = 2;
const TIMES: u64 = 5;
/// Clients that renew, and clients that acquire, through the node that is stopped.
const RENEWING: u64 = 4;
const ACQUIRING: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run of the drill found.
struct Verdict {
    violations: Vec<String>,
    questions: usize,
}

fn drill(kind: Kind, program: Program, times: u64, seed: &mut Seed) -> Verdict {
    let engine = Engine::start(kind);
    let cluster = Cluster::start(program, vec![engine.url(); NODES]);
    let (history, nodes) = (History::new(), cluster.addresses());
    let mut violations = Vec::new();
    for round in 0..times {
        let zombie = cluster.active();
        let seed = seed.part(round);
        violations.extend(one_zombie(&cluster, &history, zombie, round, seed));
    }
    let held = Client::new(&history, &nodes, 0).held();
    violations.extend(history.violations(&held));
    Verdict { violations, questions: history.entries().len() }
}

fn one_zombie(
    cluster: &Cluster,
    history: &History,
    zombie: usize,
    round: u64,
    mut seed: Seed,
) -> Vec<String> {
    let nodes = cluster.addresses();
    let (heir, stop) = ((zombie + 1) % NODES, AtomicBool::new(false));
    let leases: Vec<(String, String)> =
        (0..RENEWING).map(|number| (format!("{round}/{number}"), seed.uuid())).collect();
    for (name, lease) in &leases {
        Client::new(history, &nodes, zombie).keep(name, lease);
    }
    cluster.node(zombie).freeze();
    let frozen_at = history.now();
    let epoch = std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let only = [nodes[zombie]];
        for (name, lease) in &leases {
            let (mut client, stop) = (Client::new(history, &only, 0), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client.ask(Asked::Renew, &format!("{KEPT}{name}"), lease, KEPT_MS);
                    std::thread::park_timeout(Duration::from_millis(20));
                }
            });
        }
        // Every second time nobody acquires: a commit that is refused would silence the zombie by itself.
        for number in 0..ACQUIRING * (round % 2) {
            let (mut client, lease) = (Client::new(history, &only, 0), seed.uuid());
            scope.spawn(move || {
                client.ask(Asked::Acquire, &format!("{KEPT}{round}/z/{number}"), &lease, KEPT_MS)
            });
        }
        let mut through_heir = Client::new(history, &[nodes[heir]], 0);
        through_heir.keep(&format!("{round}/after"), &seed.uuid());
        let epoch = history.newest_epoch();
        cluster.node(zombie).thaw();
        until("the zombie to stand by", PATIENCE, || (cluster.role(zombie) != "active").then_some(()));
        epoch
    });
    let by_zombie = |entry: &Entry| match entry.told {
        Told::Done { epoch: Some(decided), .. } => entry.at >= frozen_at && decided < epoch,
        _ => false,
    };
    let served = history.entries().into_iter().filter(by_zombie);
    served
        .map(|entry| format!("S17: asked of a stopped node, and served by it after it woke up: {entry:?}"))
        .collect()
}

fn is_silent(kind: Kind) {
    let Drill { times, mut seed } = Drill::begin("zombie-node", kind.name(), TIMES);
    let verdict = drill(kind, Program::Leasehold, times, &mut seed);
    assert!(verdict.violations.is_empty(), "PROMISE BROKEN: {:#?}", verdict.violations);
    println!("{}: {times} zombies, {} questions, none answered by a zombie", kind.name(), verdict.questions);
}

#[test]
fn postgres() {
    is_silent(Kind::Postgres);
}

#[test]
fn etcd() {
    is_silent(Kind::Etcd);
}

#[test]
fn zookeeper() {
    is_silent(Kind::Zookeeper);
}

#[test]
fn redis() {
    is_silent(Kind::Redis);
}

#[test]
fn a_node_that_confirms_blindly_is_found_out() {
    let mistake = "confirms-blindly";
    Drill::finds_out(mistake, "S17", |seed| drill(Kind::Etcd, Program::Naive(mistake), 1, seed).violations);
}
