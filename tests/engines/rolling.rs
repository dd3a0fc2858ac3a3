//! A rolling restart of three nodes under load, seen through the Rust client: no call fails, no lease is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold::{Client, FencingToken, LeaseGuard};
use leasehold_tests::until;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};

/// Much longer than a node that stops in order leaves the others waiting, on any machine: a lease is then lost only by
/// being forgotten, which the release shows.
const TTL: Duration = Duration::from_secs(30);
const NODES: usize = 3;
const ROUNDS: u64 = 1;
const TASKS: u64 = 8;
const HELD: usize = 4;
/// Cycles between two restarts.
const CYCLES: u64 = 50;

/// Acquires and releases until it is told to end; every call must succeed.
async fn cycle(client: Client, task: u64, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) {
    let mut newest = None;
    while !stop.load(Relaxed) {
        let acquired = client.acquire(format!("load/{task}")).ttl(TTL).wait(Duration::from_secs(30)).await;
        let guard = acquired.unwrap_or_else(|error| panic!("an acquire failed: {error}"));
        let token = guard.token().unwrap();
        assert!(newest < Some(token), "PROMISE BROKEN: {token:?} after {newest:?}");
        newest = Some(token);
        guard.release().await.unwrap_or_else(|error| panic!("a release failed: {error}"));
        done.fetch_add(1, Relaxed);
    }
}

async fn held(client: &Client) -> Vec<(LeaseGuard, FencingToken)> {
    let mut guards = Vec::new();
    for n in 0..HELD {
        let guard = client.acquire(format!("held/{n}")).ttl(TTL).await.unwrap();
        let token = guard.token().unwrap();
        guards.push((guard, token));
    }
    guards
}

fn loads_go_on(loads: &[JoinHandle<()>], done: &AtomicU64) {
    let before = done.load(Relaxed);
    until("load", Duration::from_secs(60), || {
        assert!(!loads.iter().any(JoinHandle::is_finished), "a call failed");
        (done.load(Relaxed) >= before + CYCLES).then_some(())
    });
}

fn drill(kind: Kind) {
    let Drill { times, .. } = Drill::begin("rolling", kind.name(), ROUNDS);
    let engine = Engine::start(kind);
    let mut cluster = Cluster::start(Program::Leasehold, vec![engine.url(); NODES]);
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let nodes = cluster.addresses().into_iter();
    let client = nodes.fold(Client::builder(), |builder, node| builder.endpoint(format!("http://{node}")));
    let client = client.patience(Duration::from_secs(30)).build().unwrap();
    let guards = runtime.block_on(held(&client));
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let loads: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(cycle(client.clone(), task, Arc::clone(&stop), Arc::clone(&done))))
        .collect();
    for round in 0..times * NODES as u64 {
        loads_go_on(&loads, &done);
        cluster.restart_node(round as usize % NODES);
    }
    loads_go_on(&loads, &done);
    stop.store(true, Relaxed);
    for load in loads {
        runtime.block_on(load).expect("no call failed");
    }
    for (guard, token) in guards {
        assert_eq!(guard.token().ok(), Some(token), "a lease was lost: {:?}", guard.state());
        runtime.block_on(guard.release()).unwrap();
    }
    println!("{}: {} cycles through {times} rolling restarts", kind.name(), done.load(Relaxed));
}

#[test]
fn postgres() {
    drill(Kind::Postgres);
}

#[test]
fn etcd() {
    drill(Kind::Etcd);
}
