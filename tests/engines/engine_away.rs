//! The engine stops answering for ten seconds, frozen or dead, and comes back: meanwhile nothing is granted and the
//! answer is clear; afterwards the service goes on by itself.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold_tests::{Http, Server, free_port, until};

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::{Asked, History, Told};
use crate::load::{Client, KEPT, KEPT_MS};

const AWAY: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

/// How the engine is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// It keeps its connections and answers nothing.
    Frozen,
    /// It was killed, and is started again.
    Dead,
}

impl How {
    const fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Dead => "dead",
        }
    }
}

fn drill(kind: Kind, how: How) {
    let name = format!("{}-{}", kind.name(), how.name());
    let Drill { mut seed, .. } = Drill::begin("engine-away", &name, 1);
    let engine = Engine::start(kind);
    let cluster = Cluster::start(Program::Leasehold, vec![engine.url(); 2]);
    let (history, nodes) = (History::new(), cluster.addresses());
    let mut client = Client::new(&history, &nodes, 0);
    client.keep("before", &seed.uuid());
    match how {
        How::Frozen => engine.server.pause(0),
        How::Dead => engine.server.kill(0),
    }
    until("the engine to be away", PATIENCE, || {
        let told = client.ask(Asked::Acquire, &format!("{KEPT}still/{}", seed.uuid()), &seed.uuid(), KEPT_MS);
        (!matches!(told, Told::Done { .. })).then_some(())
    });
    let (from, mut number, mut clear) = (history.now(), 0, 0);
    // A busy machine may need longer to find out.
    while history.now() < from + AWAY || (clear == 0 && history.now() < from + PATIENCE) {
        number += 1;
        let told = client.ask(Asked::Acquire, &format!("{KEPT}meanwhile/{number}"), &seed.uuid(), KEPT_MS);
        assert!(!matches!(told, Told::Done { .. }), "granted while the engine is away");
        clear += u64::from(told == Told::Failed("store_unavailable".into()));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    for node in &nodes {
        until("a node that says what it misses", PATIENCE, || says_what_it_misses(*node).then_some(()));
    }
    match how {
        How::Frozen => engine.server.resume(0),
        How::Dead => engine.server.restart(0),
    }
    client.keep("after", &seed.uuid());
    assert!(clear > 0, "nobody was told clearly: {:?}", history.entries());
    history.judge(&client.held());
    println!("{name}: {number} acquires while it was away, {clear} clear answers");
}

/// Also one that stood by all the time: it is not ready, nobody is active, and commits make no progress.
fn says_what_it_misses(node: SocketAddr) -> bool {
    let mut http = Http::at(node).patience(Duration::from_secs(5));
    let (Ok(ready), Ok(status)) = (http.get("/readyz"), http.get("/v1/status")) else { return false };
    let status = status.json();
    let active = status["nodes"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "active"));
    ready.json()["code"] == "store_unavailable" && status["stalled"] == true && !active
}

#[test]
fn postgres_frozen() {
    drill(Kind::Postgres, How::Frozen);
}

#[test]
fn postgres_dead() {
    drill(Kind::Postgres, How::Dead);
}

#[test]
fn etcd_frozen() {
    drill(Kind::Etcd, How::Frozen);
}

#[test]
fn etcd_dead() {
    drill(Kind::Etcd, How::Dead);
}

#[test]
fn redis_frozen() {
    drill(Kind::Redis, How::Frozen);
}

#[test]
fn redis_dead() {
    drill(Kind::Redis, How::Dead);
}

#[test]
fn zookeeper_frozen() {
    drill(Kind::Zookeeper, How::Frozen);
}

#[test]
fn zookeeper_dead() {
    drill(Kind::Zookeeper, How::Dead);
}

/// A node that is started without an engine either waits for it or says what it misses; it never serves.
#[test]
fn at_the_start() {
    let engine = Engine::start(Kind::Postgres);
    engine.server.kill(0);
    let dir = tempfile::tempdir().unwrap();
    let mut node = Server::spawn_with(free_port(), &dir.path().join("data"), &["--journal", &engine.url()]);
    until("a node to say that it has no engine", PATIENCE, || {
        let granted = node.http().acquire("r", "2b1f2f0e-53ad-4f0f-9d55-5b1b0d6f7a10", 5_000);
        assert!(!granted.is_ok_and(|answer| answer.status == 200), "granted without an engine");
        let said = node.log();
        let refused = node.ended().is_some_and(|status| !status.success());
        (said.contains("unavailable") || refused).then_some(())
    });
    assert!(node.log().contains("unavailable"), "it says what it misses: {}", node.log());
}
