//! kill -9 of the active node under load: another serves in time, nothing acknowledged is lost, no token is told twice,
//! live clients keep their leases.

use leasehold_tests::{Stopwatch, hold_to};

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::History;
use crate::load::{ANSWER, Client, await_load, under_load};

const NODES: usize = 3;
const KILLS: u64 = 10;
const WORKERS: u64 = 3;
/// Acknowledged between two kills.
const LOAD: usize = 50;

fn drill(kind: Kind) {
    let Drill { times, mut seed } = Drill::begin("kill-active", kind.name(), KILLS);
    let engine = Engine::start(kind);
    let mut cluster = Cluster::start(Program::Leasehold, vec![engine.url(); NODES]);
    let (history, nodes) = (History::new(), cluster.addresses());
    let mut silences = Vec::new();
    under_load(&history, &nodes, (WORKERS, ANSWER), &seed.part(1), || {
        for round in 0..times {
            await_load(&history, LOAD);
            let active = cluster.active();
            cluster.kill9(active);
            let watch = Stopwatch::start();
            Client::new(&history, &nodes, active + 1).keep(&format!("after/{round}"), &seed.uuid());
            silences.push(watch.elapsed());
            cluster.start_node(active);
        }
    });
    let held = Client::new(&history, &nodes, 0).held();
    history.judge(&held);
    println!(
        "{}: {times} kills, {} grants acknowledged, silent for {silences:?}",
        kind.name(),
        history.grants()
    );
    hold_to(kind.serving_again(), &silences);
}

#[test]
fn postgres() {
    drill(Kind::Postgres);
}

#[test]
fn etcd() {
    drill(Kind::Etcd);
}

#[test]
fn etcd3() {
    drill(Kind::Etcd3);
}

#[test]
fn zookeeper() {
    drill(Kind::Zookeeper);
}

#[test]
fn redis() {
    drill(Kind::Redis);
}
