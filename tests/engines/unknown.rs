//! F7: a proxy between each node and the engine cuts, holds, swallows and doubles what is said, while clients work. Each
//! fault leaves a node with an outcome that it does not know; no grant may be lost by that, and none made twice.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_testbed::{Fault, Proxy};
use leasehold_tests::{Seed, until};

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::History;
use crate::load::{ANSWER, Client, await_load, under_load};

const NODES: usize = 2;
const FAULTS: u64 = 40;
const WORKERS: u64 = 4;
/// Longer than a node resolves an unknown outcome before it steps down: what was held arrives under another epoch.
const HOLD: Duration = Duration::from_secs(3);
/// Acknowledged between two faults.
const LOAD: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run of the drill found.
struct Verdict {
    violations: Vec<String>,
    grants: usize,
    done: BTreeMap<&'static str, u64>,
}

fn drill(kind: Kind, program: Program, faults: &[Fault], times: u64, seed: &mut Seed) -> Verdict {
    let engine = Engine::start(kind);
    let (proxies, urls): (Vec<_>, Vec<_>) = (0..NODES).map(|_| engine.behind_proxies()).unzip();
    let mut cluster = Cluster::start(program, urls);
    let (history, nodes) = (History::new(), cluster.addresses());
    under_load(&history, &nodes, (WORKERS, ANSWER), &seed.part(1), || {
        for _ in 0..times {
            let fault = faults[seed.below(faults.len() as u64) as usize];
            await_load(&history, LOAD);
            until("the fault to be done", PATIENCE, || {
                let proxies = &proxies[cluster.active()];
                suffer(proxies, fault).then_some(())
            });
        }
        await_load(&history, LOAD);
    });
    // What the engine has is read by a node that makes no mistakes.
    let violations = match cluster.take_stock(&engine.url()) {
        Ok(()) => history.violations(&Client::new(&history, &nodes[..1], 0).held()),
        Err(log) => vec![format!("S8, S15: what was left cannot be replayed: {log}")],
    };
    let done = proxies.iter().flatten().map(Proxy::done).fold(BTreeMap::new(), |mut sum, done| {
        done.into_iter().for_each(|(name, count)| *sum.entry(name).or_default() += count);
        sum
    });
    Verdict { violations, grants: history.grants(), done }
}

/// Whether the fault met a request: the node may have changed its part meanwhile.
fn suffer(proxies: &[Proxy], fault: Fault) -> bool {
    let before: Vec<u64> = proxies.iter().map(|proxy| proxy.done().values().sum()).collect();
    proxies.iter().for_each(|proxy| proxy.inject(fault));
    let met = proxies
        .iter()
        .zip(before)
        .any(|(proxy, before)| proxy.await_done(before + 1, Duration::from_secs(2)));
    proxies.iter().for_each(Proxy::calm);
    met
}

fn loses_nothing(kind: Kind) {
    let Drill { times, mut seed } = Drill::begin("unknown", kind.name(), FAULTS);
    let verdict = drill(kind, Program::Leasehold, &Fault::all(HOLD), times, &mut seed);
    assert!(verdict.violations.is_empty(), "PROMISE BROKEN: {:#?}", verdict.violations);
    println!(
        "{}: {times} faults {:?}, {} grants, none lost or doubled",
        kind.name(),
        verdict.done,
        verdict.grants
    );
}

#[test]
fn postgres() {
    loses_nothing(Kind::Postgres);
}

#[test]
fn etcd() {
    loses_nothing(Kind::Etcd);
}

#[test]
fn zookeeper() {
    loses_nothing(Kind::Zookeeper);
}

#[test]
fn redis() {
    loses_nothing(Kind::Redis);
}

fn is_found_out(mistake: &'static str, fault: Fault) {
    Drill::finds_out(mistake, "", |seed| {
        drill(Kind::Etcd, Program::Naive(mistake), &[fault], 3, seed).violations
    });
}

#[test]
fn a_node_that_believes_in_what_it_sent_is_found_out() {
    is_found_out("believes", Fault::CutBefore);
}

#[test]
fn a_node_that_proposes_again_in_another_slot_is_found_out() {
    is_found_out("reproposes", Fault::LoseAnswer);
}
