//! A server whose journal is on a real engine: what it serves, what it says of itself, what it does while the engine is
//! away, and moving between engines.

use std::path::Path;
use std::time::Duration;

use leasehold_server::logs::LogSink;
use leasehold_server::maintenance::{self, Backup, Site};
use leasehold_server::{
    BackupNote, Components, JournalConfig, Operator, RawConfig, RawJournal, ServeError, Server,
};
use leasehold_testbed::{Shared, etcd, postgres, redis, zookeeper};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, Client, PATIENCE, TestServer};

static POSTGRES: Shared = Shared::new(postgres);

fn etcd_url(engine: &leasehold_testbed::Server) -> String {
    engine.url().replace("http://", "etcd://")
}

fn written(url: &str, cluster: &str, data: &Path) -> RawConfig {
    RawConfig {
        listen: Some("127.0.0.1:0".into()),
        data: Some(data.to_owned()),
        journal: Some(RawJournal::from_url(url).unwrap()),
        cluster: Some(cluster.into()),
        ..RawConfig::default()
    }
}

async fn start(raw: RawConfig) -> Server {
    let config = raw.resolve().unwrap();
    let components = Components::new(&config, LogSink::none());
    Server::start(config, components).await.unwrap()
}

async fn post(server: &Server, path: &str, body: Value) -> Answer {
    Client::connect(server.address()).await.post(path, body).await
}

async fn get(server: &Server, path: &str) -> Answer {
    Client::connect(server.address()).await.get(path).await
}

async fn acquire(server: &Server, resource: &str) -> Answer {
    post(server, "/v1/locks/acquire", json!({"resource": resource, "ownerId": "ann", "ttlMs": 60_000})).await
}

fn token(answer: &Answer) -> u64 {
    answer.json()["fencingToken"].as_u64().unwrap_or_else(|| panic!("a grant: {answer:?}"))
}

fn operator() -> Operator {
    Operator { actor: "op".into(), reason: "drill".into() }
}

async fn keeps_locks_over_a_restart(url: &str, kind: &str) {
    let data = TempDir::new().unwrap();
    let server = start(written(url, "restart", data.path())).await;
    let held = acquire(&server, "held").await;
    let given_back = acquire(&server, "given-back").await;
    let path = |grant: &Answer| format!("/v1/locks/{}", grant.json()["leaseId"].as_str().unwrap());
    assert_eq!(post(&server, &format!("{}/renew", path(&held)), json!({})).await.status, 200);
    let released = Client::connect(server.address()).await.delete(&path(&given_back)).await;
    assert_eq!(released.status, 200, "{released:?}");
    let status = get(&server, "/v1/status").await.json();
    assert_eq!((&status["journal"], &status["durability"]), (&json!(kind), &json!("durable")));
    server.shutdown().await.unwrap();

    let server = start(written(url, "restart", data.path())).await;
    assert_eq!(get(&server, &path(&held)).await.json()["fencingToken"], held.json()["fencingToken"]);
    let next = acquire(&server, "given-back").await;
    assert!(token(&next) > token(&given_back), "tokens grow over a restart");
    assert_eq!(next.json()["guarantee"], "lease_only");
    assert!(get(&server, "/v1/status").await.json()["epoch"].as_u64() > status["epoch"].as_u64());
    server.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_locks_over_a_restart() {
    keeps_locks_over_a_restart(POSTGRES.server().url(), "postgres").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_keeps_locks_over_a_restart() {
    let engine = etcd();
    keeps_locks_over_a_restart(&etcd_url(&engine), "etcd").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_keeps_locks_over_a_restart() {
    let engine = zookeeper();
    keeps_locks_over_a_restart(&format!("zookeeper://{}", engine.url()), "zookeeper").await;
}

/// Asks until the answer is wanted; whatever comes before must be a clear 503.
async fn until(server: &Server, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let asking = async {
        loop {
            let body = json!({"resource": path, "ownerId": "bob"});
            let answer = post(server, "/v1/locks/acquire", body).await;
            if wanted(&answer) {
                return answer;
            }
            assert_eq!(answer.status, 503, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("the wanted answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_engine_is_away_the_answer_is_clear_and_then_the_server_goes_on_by_itself() {
    let engine = etcd();
    let data = TempDir::new().unwrap();
    let mut server = start(written(&etcd_url(&engine), "away", data.path())).await;
    let held = acquire(&server, "held").await;
    let epoch = server.handle().status().epoch;
    engine.kill(0);
    let away = until(&server, "a", |answer| answer.text().contains("store_unavailable")).await;
    away.problem(503, "store_unavailable");
    // The node has stepped down, and its connections with it; new ones are told the same.
    let down = tokio::time::timeout(PATIENCE, async {
        while get(&server, "/readyz").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    down.await.expect("not ready");
    engine.restart(0);
    let back = until(&server, "b", |answer| answer.status == 200).await;
    assert!(token(&back) > token(&held), "tokens grow over the outage");
    assert_eq!(acquire(&server, "held").await.json()["acquired"], false, "what was held is held");
    assert_eq!(get(&server, "/readyz").await.status, 200);
    let pending = tokio::time::timeout(Duration::ZERO, server.stopped()).await;
    assert!(pending.is_err(), "the server never stopped: {pending:?}");
    assert!(server.handle().status().epoch > epoch, "opened again under a new epoch");
    server.shutdown().await.unwrap();
}

/// A command of the test's own to Redis; what came back at once.
async fn raw_redis(engine: &leasehold_testbed::Server, command: &str) -> String {
    let mut stream = TcpStream::connect(engine.addresses()[0]).await.unwrap();
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// How often anybody has connected.
async fn connections(engine: &leasehold_testbed::Server) -> u64 {
    let stats = raw_redis(engine, "INFO stats").await;
    let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().trim().parse().unwrap()
}

async fn refused(raw: RawConfig) -> ServeError {
    let config = raw.resolve().unwrap();
    let components = Components::new(&config, LogSink::none());
    Server::start(config, components).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_refuses_is_told_at_the_start_and_outlasted_by_a_node_that_ran_before() {
    let engine = redis();
    let (data, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let accepting = |cluster, data: &TempDir| RawConfig {
        accept_correctness_locks_on_lossy_journal: Some(true),
        ..written(engine.url(), cluster, data.path())
    };
    let mut server = start(accepting("main", &data)).await;
    acquire(&server, "held").await;
    assert!(raw_redis(&engine, "ACL SETUSER default -hset").await.starts_with("+OK"));
    until(&server, "a", |answer| answer.text().contains("not_active")).await;
    let before = connections(&engine).await;
    let attempts = tokio::time::timeout(PATIENCE, async {
        // Each look at it is a connection too.
        for looks in 1.. {
            if connections(&engine).await > before + looks + 5 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    attempts.await.expect("it tries again and again");
    let pending = tokio::time::timeout(Duration::ZERO, server.stopped()).await;
    assert!(pending.is_err(), "the server never stopped: {pending:?}");

    let error = refused(accepting("other", &elsewhere)).await;
    assert!(error.is_refusal() && !error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("the engine answers, but"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("password")), "{error}");

    assert!(raw_redis(&engine, "ACL SETUSER default +hset").await.starts_with("+OK"));
    until(&server, "b", |answer| answer.status == 200).await;
    server.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn correctness_locks_need_a_journal_that_keeps_them_or_somebody_who_accepts_the_loss() {
    let engine = redis();
    let data = TempDir::new().unwrap();
    let server = start(written(engine.url(), "main", data.path())).await;
    acquire(&server, "a").await.problem(412, "class_not_supported");
    let body = json!({"resource": "a", "ownerId": "ann", "class": "efficiency"});
    let efficiency = post(&server, "/v1/locks/acquire", body).await.json();
    assert_eq!(efficiency["guarantee"], "best_effort");
    assert_eq!(get(&server, "/v1/status").await.json()["durability"], "lossy");
    server.shutdown().await.unwrap();

    let accepted = RawConfig {
        accept_correctness_locks_on_lossy_journal: Some(true),
        ..written(engine.url(), "main", data.path())
    };
    let server = start(accepted).await;
    let grant = acquire(&server, "b").await.json();
    assert_eq!((&grant["class"], &grant["guarantee"]), (&json!("correctness"), &json!("best_effort")));
    server.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_on_another_engine_goes_on_above_every_token_and_the_old_one_is_refused() {
    let (data, engine) = (TempDir::new().unwrap(), POSTGRES.server());
    let embedded = start(written("embedded", "copy", data.path())).await;
    let held = acquire(&embedded, "held").await;
    let from = Site::embedded(data.path());
    let to = Site::new(data.path(), &JournalConfig::from_url(engine.url(), "copy").unwrap());
    let served = maintenance::copy(&from, &to, operator()).await.unwrap_err();
    assert!(served.to_string().contains("in use") && served.hint().is_some(), "{served}");
    embedded.shutdown().await.unwrap();

    let copied = maintenance::copy(&from, &to, operator()).await.unwrap();
    assert!(copied.loss.is_none() && copied.token_floor > token(&held), "{copied:?}");
    let again = maintenance::copy(&from, &to, operator()).await.unwrap_err();
    assert!(again.to_string().contains("not empty"), "{again}");

    let moved = start(written(engine.url(), "copy", data.path())).await;
    assert!(token(&acquire(&moved, "next").await) > copied.token_floor);
    assert_eq!(acquire(&moved, "held").await.json()["acquired"], false, "what was held is held");
    let entry = get(&moved, "/v1/audit").await.json()["entries"][0].clone();
    assert_eq!((&entry["action"], &entry["actorId"]), (&json!("RECOVER"), &json!("op")));
    let reason = entry["reason"].as_str().unwrap();
    let (from, to) = reason.split_once(" to postgres://").unwrap_or_else(|| panic!("where to: {reason}"));
    assert_eq!(from, format!("copy from embedded in {}", data.path().join("journal").display()));
    assert!(to.ends_with("(cluster copy): drill") && !to.contains('@'), "{reason}");
    moved.shutdown().await.unwrap();

    let refused = refused(written("embedded", "copy", data.path())).await;
    assert!(refused.is_refusal(), "the witness has seen the new journal: {refused}");
}

/// The node goes on under its epoch: what was refused has fenced nobody.
async fn goes_on(server: &Server, resource: &str) {
    let epoch = server.handle().status().epoch;
    assert_eq!(acquire(server, resource).await.json()["acquired"], true);
    assert_eq!(server.handle().status().epoch, epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_cannot_be_made_is_refused_before_either_journal_is_changed() {
    let (data, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (postgres, etcd) = (POSTGRES.server(), etcd());
    let site = |data: &TempDir, url: &str, cluster| {
        Site::new(data.path(), &JournalConfig::from_url(url, cluster).unwrap())
    };
    let server = start(written(postgres.url(), "refused", data.path())).await;
    goes_on(&server, "before").await;
    let from = site(&data, postgres.url(), "refused");
    let to = site(&data, &etcd_url(&etcd), "refused");
    let served = maintenance::copy(&from, &to, operator()).await.unwrap_err();
    assert!(served.to_string().contains("in use") && served.hint().unwrap().contains("stop"), "{served}");
    goes_on(&server, "served").await;

    let taken = start(written(&etcd_url(&etcd), "taken", elsewhere.path())).await;
    taken.shutdown().await.unwrap();
    let nobodys = TempDir::new().unwrap();
    let full = maintenance::copy(&from, &site(&nobodys, &etcd_url(&etcd), "taken"), operator()).await;
    let full = full.unwrap_err();
    assert!(
        full.to_string().contains("not empty") && full.hint().unwrap().contains("--to-cluster"),
        "{full}"
    );
    goes_on(&server, "full").await;
    server.shutdown().await.unwrap();

    let copied = maintenance::copy(&from, &to, operator()).await.unwrap();
    let moved = start(written(&etcd_url(&etcd), "refused", data.path())).await;
    assert!(
        token(&acquire(&moved, "next").await) > copied.token_floor,
        "nothing was left by the first attempt"
    );
    moved.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_beside_a_node_of_the_directory_is_refused_before_anything_is_filled() {
    let (data, engine) = (TempDir::new().unwrap(), POSTGRES.server());
    let site = |cluster| Site::new(data.path(), &JournalConfig::from_url(engine.url(), cluster).unwrap());
    let server = start(written(engine.url(), "served", data.path())).await;
    let file = data.path().join("backup");
    Backup::prepare(&site("served"), &file).await.unwrap().take().await.unwrap();
    let refused = maintenance::restore(&file, &site("filled"), operator()).await.unwrap_err();
    assert!(refused.to_string().contains("in use"), "{refused}");
    server.shutdown().await.unwrap();
    maintenance::restore(&file, &site("filled"), operator()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_restore_and_recover_work_on_an_engine() {
    let (data, engine) = (TempDir::new().unwrap(), POSTGRES.server());
    let site = |cluster| Site::new(data.path(), &JournalConfig::from_url(engine.url(), cluster).unwrap());
    let file = data.path().join("backup");
    let missing = Backup::prepare(&site("nobodys"), &file).await.unwrap_err();
    assert!(missing.to_string().contains("no journal"), "{missing}");
    let missing = maintenance::recover(&site("nobodys"), operator(), None).await.unwrap_err();
    assert!(missing.to_string().contains("no journal"), "{missing}");

    let server = start(written(engine.url(), "first", data.path())).await;
    acquire(&server, "held").await;
    let summary = Backup::prepare(&site("first"), &file).await.unwrap().take().await.unwrap();
    assert!(summary.tail.slot.0 >= 1);
    let later = token(&acquire(&server, "later").await);
    server.shutdown().await.unwrap();
    let recovered = maintenance::recover(&site("first"), operator(), None).await.unwrap();
    assert!(recovered.token_floor > later);

    let restored = maintenance::restore(&file, &site("second"), operator()).await.unwrap();
    assert!(restored.token_floor > recovered.token_floor, "above what the witness has seen");
    let server = start(written(engine.url(), "second", data.path())).await;
    assert_eq!(acquire(&server, "held").await.json()["acquired"], false);
    server.shutdown().await.unwrap();
}

/// From the machine of a node, and from one that never had a node of this journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_an_engine_that_nobody_serves_is_noted_and_the_next_server_starts_as_usual() {
    let (data, elsewhere, engine) = (TempDir::new().unwrap(), TempDir::new().unwrap(), POSTGRES.server());
    let server = start(written(engine.url(), "unserved", data.path())).await;
    let before = token(&acquire(&server, "held").await);
    server.shutdown().await.unwrap();
    for (audit_seq, machine) in [(1, data.path()), (2, elsewhere.path())] {
        let site = Site::new(machine, &JournalConfig::from_url(engine.url(), "unserved").unwrap());
        let file = machine.join("backup");
        let backup = Backup::prepare(&site, &file).await.unwrap();
        assert_eq!(backup.note_unserved(operator()).await.unwrap(), BackupNote::Noted { audit_seq });
        backup.take().await.unwrap();
    }
    for (served, machine) in [(1, elsewhere.path()), (2, data.path())] {
        let server = start(written(engine.url(), "unserved", machine)).await;
        assert_eq!(token(&acquire(&server, &format!("next {served}")).await), before + served);
        let entries = get(&server, "/v1/audit").await.json()["entries"].clone();
        let actions: Vec<_> = entries.as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
        assert_eq!(actions, ["BACKUP", "BACKUP"]);
        server.shutdown().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_stuck_does_not_hold_the_shutdown_up() {
    let TestServer { server, journal, data: _data } = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    journal.set_paused(true);
    let body = json!({"resource": "a", "ownerId": "ann"}).to_string();
    client.write("POST", "/v1/locks/acquire", &[("content-type", "application/json")], body.as_bytes()).await;
    let stuck = async {
        while !journal.is_waited_for() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, stuck).await.expect("the append has begun");
    let ended = tokio::time::timeout(PATIENCE, server.shutdown()).await.expect("it ends");
    let error = ended.unwrap_err();
    assert!(!error.is_refusal() && error.hint().is_some(), "{error}");
    assert!(error.to_string().contains("did not finish"), "{error}");
}
