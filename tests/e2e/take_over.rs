//! Three nodes on one engine: kill -9 of the active one under load, and one that is stopped and comes back (F6).
//!
//! `LEASEHOLD_KILLS` and `LEASEHOLD_SEED` make it longer and repeat it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_tests::{Answer, Http, Seed, Server, Stopwatch, free_port, until};
use rustix::process::Signal;
use serde_json::json;

pub(crate) const NODES: usize = 3;
const KILLS: u64 = 3;
const WORKERS: u64 = 4;
/// Longer than the test.
const KEPT_MS: u64 = 600_000;
/// What a live client renews: longer than a take-over, short enough that a lost one would show.
const RENEWED_MS: u64 = 6_000;
/// What is promised at default settings.
const SERVING_AGAIN: Duration = Duration::from_secs(3);

pub(crate) struct Cluster {
    url: String,
    dir: tempfile::TempDir,
    ports: [u16; NODES],
    nodes: Vec<Option<Server>>,
}

impl Cluster {
    pub(crate) fn start(url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ports = std::array::from_fn(|_| free_port());
        let nodes = (0..NODES).map(|_| None).collect();
        let mut cluster = Self { url: url.to_owned(), dir, ports, nodes };
        for index in 0..NODES {
            cluster.start_node(index);
        }
        cluster
    }

    /// Starts a node and waits until it is ready: active, or in reach of the active one.
    fn start_node(&mut self, index: usize) {
        let data = self.dir.path().join(format!("node-{index}"));
        let mut node = Server::spawn_with(self.ports[index], &data, &["--journal", &self.url]);
        node.wait_ready();
        self.nodes[index] = Some(node);
    }

    /// Stops a node in order and starts it again.
    pub(crate) fn restart_node(&mut self, index: usize) {
        let ended = self.nodes[index].take().expect("it runs").stop();
        assert!(ended.success(), "it stops in order: {ended}");
        self.start_node(index);
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().flatten().map(Server::url).collect()
    }

    fn kill9(&mut self, index: usize) {
        self.nodes[index].take().expect("it runs").kill9();
    }

    fn active(&self) -> usize {
        until("an active node", Duration::from_secs(20), || {
            (0..NODES).find(|index| self.nodes[*index].is_some() && self.role(*index) == "active")
        })
    }

    fn role(&self, index: usize) -> String {
        let status = Http::new(self.ports[index]).get("/v1/status");
        status.map_or(String::new(), |status| status.json()["role"].as_str().unwrap_or_default().to_owned())
    }
}

/// A client that knows all nodes, and asks the next one when one cannot help. The lease id makes that safe.
struct Client {
    nodes: Vec<Http>,
    at: usize,
}

impl Client {
    fn new(ports: [u16; NODES], at: usize) -> Self {
        Self { nodes: ports.map(Http::new).into(), at: at % NODES }
    }

    /// The first answer that is not "not here, not now".
    fn ask(&mut self, ask: impl Fn(&mut Http) -> std::io::Result<Answer>) -> Answer {
        until("an answer", Duration::from_secs(30), || match ask(&mut self.nodes[self.at]) {
            Ok(answer) if answer.status != 503 => Some(answer),
            _ => {
                self.at = (self.at + 1) % NODES;
                None
            }
        })
    }

    fn acquire(&mut self, resource: &str, lease: &str, ttl_ms: u64) -> Answer {
        self.ask(|http| http.acquire(resource, lease, ttl_ms))
    }
}

/// What was acknowledged: lease to token.
type Told = Mutex<BTreeMap<String, u64>>;

#[expect(clippy::print_stdout, reason = "how to repeat it, and what was measured")]
fn kills_under_load(url: &str, name: &str) {
    let seed = Seed::from_env(2_718);
    let kills: u64 = std::env::var("LEASEHOLD_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    println!("to repeat: LEASEHOLD_SEED={} LEASEHOLD_KILLS={kills} cargo xtask e2e take_over", seed.number());
    let mut cluster = Cluster::start(url);
    let (stop, told, acknowledged) = (AtomicBool::new(false), Told::default(), AtomicU64::new(0));
    let ports = cluster.ports;
    let mut silences = Vec::new();
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..WORKERS {
            let (seed, stop, told, count) = (seed.part(number), &stop, &told, &acknowledged);
            scope.spawn(move || work(Client::new(ports, number as usize), number, seed, stop, told, count));
        }
        let (holder, stop_holder) = (seed.part(99), &stop);
        scope.spawn(move || hold(Client::new(ports, 1), holder, stop_holder));
        for _ in 0..kills {
            let before = acknowledged.load(Ordering::Relaxed);
            until("load", Duration::from_secs(30), || {
                (acknowledged.load(Ordering::Relaxed) > before + 50).then_some(())
            });
            let active = cluster.active();
            cluster.kill9(active);
            let watch = Stopwatch::start();
            let lease = seed.part(watch.elapsed().as_nanos() as u64).uuid();
            let granted = Client::new(ports, active + 1).acquire(&format!("after/{lease}"), &lease, KEPT_MS);
            let silence = watch.elapsed();
            assert!(granted.is_acquired(), "{}", granted.body);
            told.lock().unwrap().insert(lease, granted.token());
            assert!(silence < SERVING_AGAIN, "served again only after {silence:?}");
            silences.push(silence);
            cluster.start_node(active);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let told = told.into_inner().unwrap();
    let mut client = Client::new(ports, 0);
    for (lease, token) in &told {
        let found = client.ask(|http| http.get(&format!("/v1/locks/{lease}")));
        assert_eq!((found.status, found.token()), (200, *token), "acknowledged: {}", found.body);
    }
    let tokens: std::collections::BTreeSet<u64> = told.values().copied().collect();
    assert_eq!(tokens.len(), told.len(), "every token was told for one grant only");
    println!("{name}: {kills} kills, {} grants acknowledged, silent for {silences:?}", told.len());
}

/// A failed check must not leave the others working for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn work(mut client: Client, number: u64, mut seed: Seed, stop: &AtomicBool, told: &Told, count: &AtomicU64) {
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let lease = seed.uuid();
        let granted = client.acquire(&format!("r/{number}/{round}"), &lease, KEPT_MS);
        assert!(granted.is_acquired(), "nobody else wants it: {}", granted.body);
        told.lock().unwrap().insert(lease, granted.token());
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A live client, whose lease must live through everything.
fn hold(mut client: Client, mut seed: Seed, stop: &AtomicBool) {
    let lease = seed.uuid();
    let token = client.acquire("held", &lease, RENEWED_MS).token();
    while !stop.load(Ordering::Relaxed) {
        let renewed = client.ask(|http| http.post(&format!("/v1/locks/{lease}/renew"), &json!({})));
        assert_eq!(renewed.json()["renewed"], json!(true), "a live client lost its lease: {}", renewed.body);
        assert_eq!(renewed.json()["locks"][0]["fencingToken"], json!(token));
        std::thread::park_timeout(Duration::from_millis(200));
    }
}

/// F6: the active node is stopped, another takes over, and what was asked of the stopped one is not answered by it.
fn a_zombie_answers_nothing(url: &str) {
    let cluster = Cluster::start(url);
    let mut seed = Seed::from_env(1_618);
    let zombie = cluster.active();
    let heir = (zombie + 1) % NODES;
    let lease = seed.uuid();
    let token = Http::new(cluster.ports[zombie]).acquire("r", &lease, RENEWED_MS * 10).unwrap().token();
    let node = cluster.nodes[zombie].as_ref().expect("it runs");
    node.signal(Signal::STOP);
    let (port, renew) = (cluster.ports[zombie], format!("/v1/locks/{lease}/renew"));
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|number| {
                let (renew, other) = (&renew, seed.part(number).uuid());
                scope.spawn(move || match number % 2 {
                    0 => Http::new(port).post(renew, &json!({})),
                    _ => Http::new(port).acquire(&format!("z/{number}"), &other, KEPT_MS),
                })
            })
            .collect();
        let mut client = Client { nodes: vec![Http::new(cluster.ports[heir])], at: 0 };
        let after = until("another node to serve", Duration::from_secs(10), || {
            let granted =
                client.nodes[0].acquire("s", &lease.replace(&lease[..8], "00000000"), KEPT_MS).ok()?;
            granted.is_acquired().then_some(granted)
        });
        assert!(after.token() > token);
        let epoch = after.header("leasehold-epoch").unwrap().to_owned();
        node.signal(Signal::CONT);
        for answer in asked {
            let Ok(answer) = answer.join().unwrap() else { continue };
            // It may have passed the request on to the new active node; what it decided itself it must not tell.
            let decided_now = answer.header("leasehold-epoch") == Some(&epoch);
            assert!(answer.status == 503 || decided_now, "{} {:?}", answer.body, answer.headers);
        }
    });
    until("the zombie to stand by", Duration::from_secs(10), || {
        (cluster.role(zombie) == "standby").then_some(())
    });
    let mut through = Client::new(cluster.ports, zombie);
    let renewed = through.ask(|http| http.post(&renew, &json!({})));
    assert_eq!(renewed.json()["renewed"], json!(true), "through the former zombie: {}", renewed.body);
}

pub(crate) fn etcd_url(engine: &leasehold_testbed::Server) -> String {
    engine.url().replace("http://", "etcd://")
}

#[test]
fn kill9_of_the_active_on_postgres_is_ridden_over() {
    let engine = leasehold_testbed::postgres();
    kills_under_load(engine.url(), "postgres");
}

#[test]
fn kill9_of_the_active_on_etcd_is_ridden_over() {
    let engine = leasehold_testbed::etcd();
    kills_under_load(&etcd_url(&engine), "etcd");
}

#[test]
fn a_stopped_active_on_postgres_is_replaced_and_silent() {
    let engine = leasehold_testbed::postgres();
    a_zombie_answers_nothing(engine.url());
}

#[test]
fn a_stopped_active_on_etcd_is_replaced_and_silent() {
    let engine = leasehold_testbed::etcd();
    a_zombie_answers_nothing(&etcd_url(&engine));
}
