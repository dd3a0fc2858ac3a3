//! Two servers on one engine: a standby passes everything on, one hop, and takes over.

use std::time::Duration;

use leasehold_node::Role;
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, RawJournal, Server};
use leasehold_testbed::{Shared, etcd};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Client, PATIENCE};

/// Ends an answer whose length was not known.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

static ETCD: Shared = Shared::new(etcd);

/// A server of a cluster, with a data directory of its own.
struct Node {
    server: Server,
    _data: TempDir,
    /// It lives as long as somebody uses it.
    _engine: std::sync::Arc<leasehold_testbed::Server>,
}

impl Node {
    async fn start(name: &str, cluster: &str) -> Self {
        let data = TempDir::new().unwrap();
        let engine = ETCD.server();
        let url = engine.url().replace("http://", "etcd://");
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".into()),
            data: Some(data.path().to_owned()),
            node: Some(name.into()),
            journal: Some(RawJournal::from_url(&url).unwrap()),
            cluster: Some(cluster.into()),
            ..RawConfig::default()
        };
        let config = raw.resolve().unwrap();
        let components = Components::new(&config, LogSink::none());
        let server = Server::start(config, components).await.unwrap();
        Self { server, _data: data, _engine: engine }
    }

    async fn connect(&self) -> Client {
        Client::connect(self.server.address()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.connect().await.get(path).await
    }

    async fn acquire(&self, resource: &str, wait_ms: u64) -> Answer {
        let body = json!({"resource": resource, "ownerId": "ann", "ttlMs": 60_000, "waitMs": wait_ms});
        self.connect().await.post("/v1/locks/acquire", body).await
    }

    fn role(&self) -> Role {
        self.server.handle().status().role
    }
}

/// The active node and one that stands by and knows it.
async fn pair(cluster: &str) -> (Node, Node) {
    let active = Node::start("first", cluster).await;
    assert_eq!(active.role(), Role::Active, "whoever founds a journal serves at once");
    let standby = Node::start("second", cluster).await;
    until("the standby is ready", async || standby.get("/readyz").await.status == 200).await;
    assert_eq!(standby.role(), Role::Standby);
    (active, standby)
}

async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let reached = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn lease_path(grant: &Answer) -> String {
    format!("/v1/locks/{}", grant.json()["leaseId"].as_str().unwrap_or_else(|| panic!("a grant: {grant:?}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_goes_through_a_standby() {
    let (active, standby) = pair("through").await;
    let grant = standby.acquire("r", 0).await;
    assert_eq!(grant.json()["fencingToken"], 1);
    let direct = active.acquire("s", 0).await;
    assert_eq!(grant.header("leasehold-epoch"), direct.header("leasehold-epoch"), "that of who decided");
    assert!(grant.header("leasehold-epoch").unwrap().ends_with("/1"));
    assert_eq!(standby.acquire("r", 0).await.json()["acquired"], false);
    let mut client = standby.connect().await;
    let renewed = client.post(&format!("{}/renew", lease_path(&grant)), json!({})).await;
    assert_eq!(renewed.json()["renewed"], true);
    let body = json!({"resource": "k", "ownerId": "ann"});
    let keyed = client.post_keyed("/v1/locks/acquire", "key-1", body.clone()).await;
    let again = active.connect().await.post_keyed("/v1/locks/acquire", "key-1", body).await;
    assert_eq!(keyed.json()["leaseId"], again.json()["leaseId"], "the key is passed on");
    assert_eq!(client.delete(&lease_path(&grant)).await.json()["released"], true);
    client.post("/v1/locks/acquire", json!({"resource": ""})).await.problem(400, "bad_request");
    let listed = standby.get("/v1/locks").await.json()["locks"].clone();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|lock| lock["resource"].clone()).collect();
    assert_eq!(names, ["k", "s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_makes_one_hop_and_not_two() {
    let (_active, standby) = pair("hop").await;
    let body = json!({"resource": "r", "ownerId": "ann"}).to_string();
    let headers = [("content-type", "application/json"), ("leasehold-forwarded", "x http://127.0.0.1:1")];
    let answer = standby.connect().await.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await;
    answer.problem(503, "not_active");
    let answer = standby.connect().await.send("GET", "/readyz", &headers[1..], b"").await;
    answer.problem(503, "not_active");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_tells_roles_addresses_and_lag() {
    let (active, standby) = pair("status").await;
    active.acquire("r", 0).await;
    until("the standby has followed", async || standby.get("/v1/status").await.json()["locksHeld"] == 1)
        .await;
    let seen = standby.get("/v1/status").await.json();
    assert_eq!((&seen["role"], &seen["epoch"], &seen["lag"]), (&json!("standby"), &json!(1), &json!(0)));
    assert_eq!(seen["activeAddress"], active.server.url());
    let names = |status: &Value| -> Vec<String> {
        let nodes = status["nodes"].as_array().unwrap();
        nodes.iter().map(|node| format!("{} {}", node["node"], node["role"])).collect()
    };
    assert_eq!(names(&seen), [r#""second" "standby""#, r#""first" "active""#]);
    until("the active node has heard of the standby", async || {
        names(&active.get("/v1/status").await.json()) == [r#""first" "active""#, r#""second" "standby""#]
    })
    .await;
    assert_eq!(standby.get("/metrics").await.status, 200);
    assert_eq!(standby.get("/").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_through_a_standby_is_granted_and_a_disconnect_is_passed_on() {
    let (active, standby) = pair("waits").await;
    let held = active.acquire("r", 0).await;
    let mut leaving = standby.connect().await;
    let body = json!({"resource": "r", "ownerId": "bob", "waitMs": 60_000}).to_string();
    let headers = [("content-type", "application/json")];
    leaving.write("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await;
    let waiters = || active.server.handle().status().counts.waiters;
    until("it waits", async || waiters() == 1).await;
    drop(leaving);
    until("its wait ended with it", async || waiters() == 0).await;

    let (granted, ()) = tokio::join!(standby.acquire("r", 60_000), async {
        until("another waits", async || waiters() == 1).await;
        active.connect().await.delete(&lease_path(&held)).await;
    });
    assert_eq!(granted.json()["acquired"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_closes_streams_and_the_standby_serves_at_once() {
    let (active, standby) = pair("hand-over").await;
    let held = standby.acquire("kept", 0).await;
    let mut events = standby.connect().await;
    events.write("GET", "/v1/events", &[], b"").await;
    events.read_until(b": watching").await;
    active.acquire("seen", 0).await;
    let piece = String::from_utf8(events.read_until(b"event: granted").await).unwrap();
    assert!(piece.contains("event: granted"), "{piece}");

    let Node { server, .. } = active;
    server.shutdown().await.unwrap();
    let left = tokio::time::Instant::now();
    until("the standby serves", async || standby.role() == Role::Active).await;
    let took = left.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    events.read_until(LAST_CHUNK).await;
    until("it is ready", async || standby.get("/readyz").await.status == 200).await;
    let renewed = standby.connect().await.post(&format!("{}/renew", lease_path(&held)), json!({})).await;
    assert_eq!(renewed.json()["renewed"], true, "{renewed:?}");
    assert!(renewed.header("leasehold-epoch").unwrap().ends_with("/2"));
    assert_eq!(standby.acquire("kept", 0).await.json()["acquired"], false);
}

/// A request may be on its way while the node changes its part: closing the connection would leave it without an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_active_node_closes_no_connection_between_requests() {
    let (active, standby) = pair("between").await;
    let mut unused = standby.connect().await;
    let mut used = standby.connect().await;
    assert_eq!(used.get("/v1/status").await.json()["role"], "standby");
    let mut events = standby.connect().await;
    events.write("GET", "/v1/events", &[], b"").await;
    events.read_until(b": watching").await;

    let Node { server, .. } = active;
    server.shutdown().await.unwrap();
    until("the standby serves", async || standby.role() == Role::Active).await;
    events.read_until(LAST_CHUNK).await;
    assert_eq!(used.get("/v1/status").await.json()["role"], "active");
    assert_eq!(unused.get("/v1/status").await.json()["role"], "active");
}
