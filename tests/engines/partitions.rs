//! F8: three nodes, an engine and clients, each in a network namespace of its own, with packets dropped between them.
//! When the network is whole again, one node serves within 8 s, and everything is as it was told: never two at a time, as
//! the epochs of the answers tell, and in the end one that all others follow.

use std::sync::Arc;
use std::time::Duration;

use leasehold_testbed::{Network, Proxy};
use leasehold_tests::{Seed, Stopwatch, hold_to};

use crate::cluster::Cluster;
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::History;
use crate::load::{Client, await_load, under_load};

const NODES: usize = 3;
const ENGINE: usize = NODES;
const CLIENTS: usize = NODES + 1;
const TIMES: u64 = 5;
const WORKERS: u64 = 3;
/// Acknowledged between two partitions.
const LOAD: usize = 20;
/// One answer: a node behind a cut never gives one.
const ANSWER: Duration = Duration::from_secs(2);
/// L3.
const SERVING_AGAIN: Duration = Duration::from_secs(8);

/// Who does not hear of whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Topology {
    /// The active node and the engine.
    NodeEngine,
    /// The active node and the clients, who can still ask the others.
    NodeClient,
    /// The active node and everybody except the engine, which joins the two sides.
    Bridge,
    /// The active node and the engine, one way: questions are lost, or answers.
    OneWay,
    /// The active node and the engine, now and then.
    Flapping,
}

impl Topology {
    const fn name(self) -> &'static str {
        match self {
            Self::NodeEngine => "node-engine",
            Self::NodeClient => "node-client",
            Self::Bridge => "bridge",
            Self::OneWay => "one-way",
            Self::Flapping => "flapping",
        }
    }

    /// Cuts for some seconds, drawn from the seed; heals.
    fn happen(self, network: &Network, active: usize, seed: &mut Seed) {
        let long = Duration::from_millis(1_500 + seed.below(2_500));
        match self {
            Self::NodeEngine => network.cut(active, ENGINE),
            Self::NodeClient => network.cut(active, CLIENTS),
            Self::Bridge => {
                let others = (0..NODES).filter(|node| *node != active).chain([CLIENTS]);
                others.for_each(|other| network.cut(active, other));
            }
            Self::OneWay if seed.below(2) == 0 => network.cut_one_way(active, ENGINE),
            Self::OneWay => network.cut_one_way(ENGINE, active),
            Self::Flapping => {
                for _ in 0..4 {
                    network.cut(active, ENGINE);
                    pause(Duration::from_millis(200 + seed.below(900)));
                    network.heal();
                    pause(Duration::from_millis(50 + seed.below(400)));
                }
                return;
            }
        }
        pause(long);
        network.heal();
    }
}

/// A fault lasts as long as it lasts: there is no event to wait for.
#[expect(clippy::disallowed_methods, reason = "a cut lasts for a while")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn drill(kind: Kind, topology: Topology) {
    let engine = Engine::start(kind);
    let network = match Network::of(CLIENTS + 1) {
        Ok(network) => Arc::new(network),
        Err(why) => {
            return println!("NOT RUN: partitions::{}: no network namespaces here: {why}", kind.name());
        }
    };
    // The engine is offered at its place by a proxy that does nothing else.
    let gate = Proxy::on(network.listen(ENGINE), engine.server.addresses()[0]);
    let url = engine.url_at(&[gate.address()]);
    std::thread::scope(|scope| {
        let work = || {
            // The thread, and those that it starts, are clients; nodes are started at their own places.
            network.place(CLIENTS).move_in();
            partitions(kind, topology, &network, &url);
        };
        scope.spawn(work).join().unwrap();
    });
}

fn partitions(kind: Kind, topology: Topology, network: &Arc<Network>, url: &str) {
    let name = format!("{} --topology {}", kind.name(), topology.name());
    let Drill { times, mut seed } = Drill::begin("partitions", &name, TIMES);
    let cluster = Cluster::start_in(network, vec![url.to_owned(); NODES]);
    let (history, nodes) = (History::new(), cluster.addresses());
    let mut silences = Vec::new();
    under_load(&history, &nodes, (WORKERS, ANSWER), &seed.part(1), || {
        for round in 0..times {
            await_load(&history, LOAD);
            topology.happen(network, cluster.active(), &mut seed);
            let watch = Stopwatch::start();
            let mut client = Client::new(&history, &nodes, round as usize).patience(ANSWER);
            client.keep(&format!("after/{round}"), &seed.uuid());
            silences.push(watch.elapsed());
        }
    });
    let epoch = cluster.agreed();
    assert!(
        history.newest_epoch() <= epoch,
        "PROMISE BROKEN: somebody served under an epoch that nobody knows"
    );
    let held = Client::new(&history, &nodes, 0).held();
    history.judge(&held);
    println!("{name}: {times} partitions, {} grants, serving after {silences:?}", history.grants());
    hold_to(SERVING_AGAIN, &silences);
}

mod postgres {
    use super::*;

    #[test]
    fn node_engine() {
        drill(Kind::Postgres, Topology::NodeEngine);
    }

    #[test]
    fn node_client() {
        drill(Kind::Postgres, Topology::NodeClient);
    }

    #[test]
    fn bridge() {
        drill(Kind::Postgres, Topology::Bridge);
    }

    #[test]
    fn one_way() {
        drill(Kind::Postgres, Topology::OneWay);
    }

    #[test]
    fn flapping() {
        drill(Kind::Postgres, Topology::Flapping);
    }
}

mod etcd {
    use super::*;

    #[test]
    fn node_engine() {
        drill(Kind::Etcd, Topology::NodeEngine);
    }

    #[test]
    fn node_client() {
        drill(Kind::Etcd, Topology::NodeClient);
    }

    #[test]
    fn bridge() {
        drill(Kind::Etcd, Topology::Bridge);
    }

    #[test]
    fn one_way() {
        drill(Kind::Etcd, Topology::OneWay);
    }

    #[test]
    fn flapping() {
        drill(Kind::Etcd, Topology::Flapping);
    }
}
