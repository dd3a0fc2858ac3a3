//! A rolling restart of three nodes under load, seen through the Rust client: no call fails, no lease is lost. Beside it
//! clients of the HTTP API want the same, whose answers show their epochs; the history is that of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold::{Client, LeaseGuard};
use leasehold_tests::until;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::{Asked, History, Told};
use crate::load::{self, ANSWER, KEPT, under_load};

/// Much longer than a node that stops in order leaves the others waiting, on any machine: a lease is then lost only by
/// being forgotten, which the release shows.
const TTL: Duration = Duration::from_secs(30);
/// Longer than a restart with everybody who waits in front, for the same reason.
const WAIT: Duration = Duration::from_secs(60);
const NODES: usize = 3;
const ROUNDS: u64 = 1;
const TASKS: u64 = 8;
/// Fewer than tasks: some have theirs alone, some share it.
const RESOURCES: u64 = 6;
const WORKERS: u64 = 1;
const HELD: usize = 4;
/// Cycles between two restarts.
const CYCLES: u64 = 50;

/// The Rust client, and what it was told. However often a call asks, here it is one question with one answer.
#[derive(Clone)]
struct Recorded {
    client: Client,
    history: Arc<History>,
}

impl Recorded {
    fn of(cluster: &Cluster) -> Self {
        let nodes = cluster.addresses().into_iter();
        let client =
            nodes.fold(Client::builder(), |builder, node| builder.endpoint(format!("http://{node}")));
        Self { client: client.patience(WAIT).build().unwrap(), history: Arc::new(History::new()) }
    }

    async fn acquire(&self, resource: String) -> LeaseGuard {
        let at = self.history.now();
        let acquired = self.client.acquire(resource).ttl(TTL).wait(WAIT).await;
        let guard = acquired.unwrap_or_else(|error| panic!("an acquire failed: {error}"));
        self.note(Asked::Acquire, &guard, at, guard.ttl());
        guard
    }

    async fn release(&self, guard: LeaseGuard) {
        let (at, lease, resource) = (self.history.now(), guard.lease_id(), guard.resource().to_owned());
        let token = token(&guard);
        guard.release().await.unwrap_or_else(|error| panic!("a release failed: {error}"));
        let told = Told::Done { token, ttl_ms: 0, epoch: None };
        self.history.note(Asked::Release, (&resource, &lease.to_string()), at, told);
    }

    /// What a guard counts on, its last renewal has told it.
    fn renewed(&self, guard: &LeaseGuard) {
        self.note(Asked::Renew, guard, self.history.now(), guard.remaining());
    }

    fn note(&self, asked: Asked, guard: &LeaseGuard, at: Duration, promised: Duration) {
        let ttl_ms = u64::try_from(promised.as_millis()).unwrap();
        let told = Told::Done { token: token(guard), ttl_ms, epoch: None };
        self.history.note(asked, (guard.resource(), &guard.lease_id().to_string()), at, told);
    }
}

fn token(guard: &LeaseGuard) -> u64 {
    guard.token().unwrap_or_else(|_| panic!("a lease was lost: {:?}", guard.state())).get()
}

/// Acquires and releases until it is told to end; every call must succeed.
async fn cycle(client: Recorded, task: u64, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) {
    let mut newest = 0;
    while !stop.load(Relaxed) {
        let guard = client.acquire(format!("hot/{}", task % RESOURCES)).await;
        let token = token(&guard);
        assert!(newest < token, "PROMISE BROKEN: {token} after {newest}");
        newest = token;
        client.release(guard).await;
        done.fetch_add(1, Relaxed);
    }
}

async fn held(client: &Recorded) -> Vec<LeaseGuard> {
    let mut guards = Vec::new();
    for n in 0..HELD {
        guards.push(client.acquire(format!("{KEPT}rust/{n}")).await);
    }
    guards
}

fn loads_go_on(loads: &[JoinHandle<()>], done: &AtomicU64) {
    let before = done.load(Relaxed);
    until("load", 2 * WAIT, || {
        assert!(!loads.iter().any(JoinHandle::is_finished), "a call failed");
        (done.load(Relaxed) >= before + CYCLES).then_some(())
    });
}

/// Restarts one node after the other while tasks acquire and release; how often they did.
fn restarts(cluster: &mut Cluster, client: &Recorded, runtime: &Runtime, times: u64) -> u64 {
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let loads: Vec<_> = (0..TASKS)
        .map(|task| runtime.spawn(cycle(client.clone(), task, Arc::clone(&stop), Arc::clone(&done))))
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
    done.load(Relaxed)
}

fn drill(kind: Kind) {
    let Drill { times, seed } = Drill::begin("rolling", kind.name(), ROUNDS);
    let engine = Engine::start(kind);
    let mut cluster = Cluster::start(Program::Leasehold, vec![engine.url(); NODES]);
    let (runtime, nodes) = (Runtime::new().unwrap(), cluster.addresses());
    let _inside = runtime.enter();
    let client = Recorded::of(&cluster);
    let guards = runtime.block_on(held(&client));
    let mut cycles = 0;
    under_load(&client.history, &nodes, (WORKERS, ANSWER), &seed, || {
        cycles = restarts(&mut cluster, &client, &runtime, times);
    });
    guards.iter().for_each(|guard| client.renewed(guard));
    client.history.judge(&load::Client::new(&client.history, &nodes, 0).held());
    for guard in guards {
        runtime.block_on(client.release(guard));
    }
    println!("{}: {cycles} cycles through {times} rolling restarts", kind.name());
}

#[test]
fn postgres() {
    drill(Kind::Postgres);
}

#[test]
fn etcd() {
    drill(Kind::Etcd);
}
