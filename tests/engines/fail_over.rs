//! F9: the engine fails over by itself. Without loss the service goes on; after a loss every node halts and says what to
//! do, and after `recover` no token is given out again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_testbed::{PostgresPair, Server};
use leasehold_tests::{Http, StopOnDrop, Stopwatch, binary, hold_to, until};
use serde_json::json;

use crate::cluster::{Cluster, Program};
use crate::drill::Drill;
use crate::engine::{Engine, Kind};
use crate::history::{Asked, History, Told};
use crate::load::{ANSWER, Client, KEPT, KEPT_MS, await_load, under_load};

const TIMES: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// L3.
const SERVING_AGAIN: Duration = Duration::from_secs(8);

fn postgres_url(addresses: &[SocketAddr]) -> String {
    let hosts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    format!("postgres://postgres@{}/postgres?sslmode=disable", hosts.join(","))
}

/// A standby that did not get everything is promoted: acknowledged commits are lost, and nobody may go on as if not.
#[test]
fn postgres_async() {
    let Drill { times, seed } = Drill::begin("fail-over", "postgres-async", TIMES);
    for round in 0..times {
        let mut seed = seed.part(round);
        let pair = PostgresPair::start(false);
        let both = [pair.primary.addresses()[0], pair.standby.addresses()[0]];
        let url = postgres_url(&both);
        let mut cluster = Cluster::start(Program::Leasehold, vec![url.clone(); 2]);
        let (history, nodes) = (History::new(), cluster.addresses());
        let mut client = Client::new(&history, &nodes, 0);
        client.keep("both-have-it", &seed.uuid());
        pair.until_caught_up();
        pair.cut_off();
        let lost = (0..5).map(|number| client.keep(&format!("lost/{number}"), &seed.uuid())).max().unwrap();
        pair.primary.kill(0);
        pair.promote();
        for index in 0..cluster.len() {
            let status = until("a node to halt", PATIENCE, || cluster.node_mut(index).ended());
            let log = cluster.node(index).log();
            assert!(
                status.code() == Some(78) && log.contains("recover"),
                "it says what to do, and is not started again: {status} {log}"
            );
        }
        recover(&url, &cluster, 0);
        cluster.start_node(0);
        let next = Client::new(&history, &nodes[..1], 0).keep("next", &seed.uuid());
        assert!(next > lost, "PROMISE BROKEN: token {next} after {lost} was told");
    }
    println!("postgres-async: {times} lossy fail-overs, every node halted every time");
}

fn recover(url: &str, cluster: &Cluster, index: usize) {
    let mut command = Command::new(binary::path());
    command.args(["recover", "--journal", url, "--actor", "drill", "--reason", "lossy fail-over", "--data"]);
    let output = command.arg(cluster.data(index)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The standby is promoted while the old primary still runs, with a node beside it that knows of nothing.
#[test]
fn postgres_sync() {
    let Drill { times, seed } = Drill::begin("fail-over", "postgres-sync", TIMES);
    for round in 0..times {
        let mut seed = seed.part(round);
        let pair = PostgresPair::start(true);
        let [old, new] = [&pair.primary, &pair.standby].map(|server| postgres_url(&server.addresses()));
        let beside = Cluster::start(Program::Leasehold, vec![old]);
        let (history, stop) = (History::new(), AtomicBool::new(false));
        let (resource, lease) = (format!("{KEPT}held"), seed.uuid());
        Client::new(&history, &beside.addresses(), 0).keep("held", &lease);
        let successor = std::thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            let (mut renewing, stop) = (Client::new(&history, &beside.addresses(), 0), &stop);
            let (resource, lease) = (&resource, &lease);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    renewing.ask(Asked::Renew, resource, lease, KEPT_MS);
                    std::thread::park_timeout(Duration::from_millis(10));
                }
            });
            pair.promote();
            let successor = Cluster::start(Program::Leasehold, vec![new]);
            successor.active();
            Client::new(&history, &successor.addresses(), 0).keep("next", &seed.uuid());
            let served_at = history.now();
            // Long enough for the old node to answer, if it did.
            until("questions to the old node", PATIENCE, || {
                let late = history.entries().into_iter().filter(|entry| entry.at > served_at).count();
                (late >= 5).then_some(())
            });
            let late = history.entries().into_iter().filter(|entry| entry.at > served_at);
            let renewed: Vec<_> = late.filter(|entry| matches!(entry.told, Told::Done { .. })).collect();
            assert!(renewed.is_empty(), "renewed beside the old primary: {renewed:?}");
            successor
        });
        let held = Client::new(&history, &successor.addresses(), 0).held();
        history.judge(&held);
    }
    println!("postgres-sync: {times} promotions beside a running primary, nothing renewed there");
}

/// The settings that `deploy/` puts on both servers of a pair.
const SETTINGS: &str = include_str!("../../deploy/postgres/postgresql.conf");

/// Gives one of a pair the settings that both are to have.
fn set_up(pair: &PostgresPair, server: &Server) {
    let settings = SETTINGS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for setting in settings {
        pair.sql(server, &format!("ALTER SYSTEM SET {setting}"));
    }
    pair.sql(server, "SELECT pg_reload_conf()");
}

/// The standby of a synchronous pair, set up as `deploy/` has it, is promoted after something was done to the primary: it
/// serves alone, and the nodes, which know of both, find it.
fn promotions(name: &str, to_primary: fn(&Server)) {
    let Drill { times, seed } = Drill::begin("fail-over", name, TIMES);
    let mut silences = Vec::new();
    for round in 0..times {
        let mut seed = seed.part(round);
        let pair = PostgresPair::start(true);
        set_up(&pair, &pair.standby);
        let both = [pair.primary.addresses()[0], pair.standby.addresses()[0]];
        let cluster = Cluster::start(Program::Leasehold, vec![postgres_url(&both); 2]);
        let (history, nodes) = (History::new(), cluster.addresses());
        Client::new(&history, &nodes, 0).keep("before", &seed.uuid());
        to_primary(&pair.primary);
        pair.promote();
        let watch = Stopwatch::start();
        Client::new(&history, &nodes, 0).keep("after", &seed.uuid());
        silences.push(watch.elapsed());
        assert!(cluster.agreed() > 1, "the class is that of the new primary: it was taken over anew");
        let held = Client::new(&history, &nodes, 0).held();
        history.judge(&held);
    }
    println!("{name}: {times} promotions, serving after {silences:?}");
    hold_to(SERVING_AGAIN, &silences);
}

#[test]
fn postgres_alone() {
    promotions("postgres-alone", |primary| primary.kill(0));
}

/// The old primary runs on. It takes connections and ends no commit.
#[test]
fn postgres_beside() {
    promotions("postgres-beside", |_| ());
}

/// The old primary takes connections and says nothing, as a machine that hangs.
#[test]
fn postgres_hung() {
    promotions("postgres-hung", |primary| primary.pause(0));
}

/// Somebody deletes the journal under its nodes. None of them goes on, and none that has seen it founds it anew.
#[test]
fn etcd_emptied() {
    let Drill { mut seed, .. } = Drill::begin("fail-over", "etcd-emptied", 1);
    let engine = Engine::start(Kind::Etcd);
    let mut cluster = Cluster::start(Program::Leasehold, vec![engine.url(); 2]);
    let (history, nodes) = (History::new(), cluster.addresses());
    Client::new(&history, &nodes, 0).keep("before", &seed.uuid());
    // Every standby writes its witness once a second.
    let seen = cluster.data(1 - cluster.active()).join("witness");
    until("a standby's witness", PATIENCE, || {
        std::fs::read_to_string(&seen).ok()?.contains("token").then_some(())
    });
    let etcdctl = |arguments: &[&str]| {
        let endpoint = engine.server.addresses()[0].to_string();
        let mut command = Command::new("etcdctl");
        let output = command.args(["--endpoints", &endpoint]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    etcdctl(&["del", "", "--from-key"]);
    for again in [false, true] {
        for index in 0..cluster.len() {
            if again {
                cluster.spawn_node(index);
            }
            let status = until("a node to halt", PATIENCE, || cluster.node_mut(index).ended());
            let log = cluster.node(index).log();
            assert!(
                status.code() == Some(78) && log.contains("there is none of this name"),
                "{status} {log}"
            );
        }
    }
    assert_eq!(etcdctl(&["get", "", "--from-key", "--keys-only"]), "", "nothing was founded");
}

/// The engine's own leader is killed under load.
fn leader_kills(kind: Kind, is_leader: fn(SocketAddr) -> bool) {
    let Drill { times, mut seed } = Drill::begin("fail-over", kind.name(), TIMES);
    let engine = Engine::start(kind);
    let cluster = Cluster::start(Program::Leasehold, vec![engine.url(); 2]);
    let (history, nodes) = (History::new(), cluster.addresses());
    let mut silences = Vec::new();
    under_load(&history, &nodes, (2, ANSWER), &seed.part(1), || {
        for round in 0..times {
            await_load(&history, 20);
            let members = engine.server.addresses();
            let leader = until("a leader", PATIENCE, || members.iter().position(|member| is_leader(*member)));
            engine.server.kill(leader);
            let watch = Stopwatch::start();
            Client::new(&history, &nodes, 0).keep(&format!("after/{round}"), &seed.uuid());
            silences.push(watch.elapsed());
            engine.server.restart(leader);
        }
    });
    let held = Client::new(&history, &nodes, 0).held();
    history.judge(&held);
    println!(
        "{}: {times} leaders killed, {} grants, serving after {silences:?}",
        kind.name(),
        history.grants()
    );
    hold_to(SERVING_AGAIN, &silences);
}

#[test]
fn etcd3() {
    leader_kills(Kind::Etcd3, |member| {
        let mut http = Http::at(member).patience(Duration::from_secs(5));
        let Ok(status) = http.post("/v3/maintenance/status", &json!({})) else { return false };
        let status = status.json();
        !status["leader"].is_null() && status["leader"] == status["header"]["member_id"]
    });
}

#[test]
fn zookeeper3() {
    leader_kills(Kind::Zookeeper3, |member| {
        let asked = TcpStream::connect(member).and_then(|mut socket| {
            socket.write_all(b"srvr")?;
            let mut said = String::new();
            socket.read_to_string(&mut said).map(|_| said)
        });
        asked.is_ok_and(|said| said.contains("Mode: leader"))
    });
}
