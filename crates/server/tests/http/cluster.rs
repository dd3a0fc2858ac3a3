//! Two servers on one engine: a standby passes everything on, one hop, and takes over.

use std::sync::Arc;
use std::time::Duration;

use leasehold_node::{NoObserver, NodeConfig, RealClock, Role, SharedJournal};
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, JournalConfig, RawConfig, RawJournal, RawTraces, Server};
use leasehold_testbed::{Collector, Shared, etcd};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{Answer, Client, PATIENCE};

/// Ends an answer whose length was not known.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

static ETCD: Shared = Shared::new(etcd);

/// A server of a cluster, with a data directory of its own.
struct Node {
    server: Server,
    _data: TempDir,
    /// It lives as long as somebody uses it.
    _engine: Arc<leasehold_testbed::Server>,
}

impl Node {
    async fn start(name: &str, cluster: &str) -> Self {
        Self::start_with(name, cluster, RawConfig::default()).await
    }

    async fn start_with(name: &str, cluster: &str, more: RawConfig) -> Self {
        let data = TempDir::new().unwrap();
        let engine = ETCD.server();
        let url = engine.url().replace("http://", "etcd://");
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".into()),
            data: Some(data.path().to_owned()),
            node: Some(name.into()),
            journal: Some(RawJournal::from_url(&url).unwrap()),
            cluster: Some(cluster.into()),
            ..more
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
    pair_with(cluster, RawConfig::default()).await
}

async fn pair_with(cluster: &str, more: RawConfig) -> (Node, Node) {
    let active = Node::start_with("first", cluster, more.clone()).await;
    assert_eq!(active.role(), Role::Active, "whoever founds a journal serves at once");
    let standby = Node::start_with("second", cluster, more).await;
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

/// Names and roles of the nodes in a status.
fn names(status: &Value) -> Vec<String> {
    let nodes = status["nodes"].as_array().unwrap();
    nodes.iter().map(|node| format!("{} {}", node["node"], node["role"])).collect()
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
    assert!(grant.header("leasehold-durability").is_some(), "once, as it was told there");
    assert_eq!(grant.header("leasehold-durability"), direct.header("leasehold-durability"));
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

/// A listener that a standby takes for the active node. It keeps the first acquire that arrives, and closes every
/// connection without an answer.
struct Recorder {
    url: String,
    acquires: mpsc::UnboundedReceiver<String>,
}

impl Recorder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (found, acquires) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                // The body of an acquire ends with a brace; a knock has none.
                let whole = |bytes: &[u8]| {
                    bytes.ends_with(b"}") || (bytes.starts_with(b"GET") && bytes.ends_with(b"\r\n\r\n"))
                };
                while !whole(&bytes) && socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
                let text = String::from_utf8(bytes).unwrap();
                if text.starts_with("POST /v1/locks/acquire") && found.send(text).is_err() {
                    return;
                }
            }
        });
        Self { url, acquires }
    }
}

/// Headers and body of a request as it was on the wire.
fn parted(request: &str) -> (Vec<(&str, &str)>, &str) {
    let (head, body) = request.split_once("\r\n\r\n").expect("a whole request");
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    // Those of the connection are the test client's own.
    (headers.filter(|(name, _)| !["host", "content-length"].contains(name)).collect(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_makes_one_hop_is_sent_once_and_proves_where_it_comes_from() {
    let mut recorder = Recorder::start().await;
    let raw = RawConfig { advertise: Some(recorder.url.clone()), ..RawConfig::default() };
    let active = Node::start_with("first", "hop", raw).await;
    let standby = Node::start("second", "hop").await;
    until("the standby knows where the active node is", async || {
        standby.get("/v1/status").await.json()["activeAddress"] == recorder.url.as_str()
    })
    .await;
    let body = json!({"resource": "r", "ownerId": "ann"});
    let lost = standby.connect().await.post_keyed("/v1/locks/acquire", "key-1", body).await;
    lost.problem(503, "outcome_unknown");
    let passed_on = recorder.acquires.recv().await.unwrap();
    assert!(recorder.acquires.try_recv().is_err(), "it was sent once, and never again");

    let (headers, body) = parted(&passed_on);
    assert!(headers.contains(&("idempotency-key", "key-1")), "{headers:?}");
    let send = async |node: &Node, headers: &[(&str, &str)]| {
        node.connect().await.send("POST", "/v1/locks/acquire", headers, body.as_bytes()).await
    };
    send(&standby, &headers).await.problem(503, "not_active");
    assert_eq!(send(&active, &headers).await.json()["acquired"], true);
    let changed: Vec<_> =
        headers.iter().map(|h| if h.0 == "idempotency-key" { (h.0, "key-2") } else { *h }).collect();
    send(&active, &changed).await.problem(403, "forbidden");
    let without: Vec<_> = headers.iter().filter(|h| h.0 != "leasehold-forwarded-proof").copied().collect();
    send(&active, &without).await.problem(503, "not_active");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_a_node_can_say_that_a_request_was_passed_on() {
    let (active, standby) = pair("forged").await;
    let body = json!({"resource": "r", "ownerId": "ann"}).to_string();
    let json = ("content-type", "application/json");
    let mark = ("leasehold-forwarded", "second http://127.0.0.1:1");
    let digits = "00".repeat(32);
    let proof = ("leasehold-forwarded-proof", digits.as_str());
    let identity = ("leasehold-forwarded-identity", "admin");
    for node in [&active, &standby] {
        let mut client = node.connect().await;
        for (headers, status, code) in [
            (vec![json, mark], 503, "not_active"),
            (vec![json, mark, proof], 403, "forbidden"),
            (vec![json, mark, proof, identity], 403, "forbidden"),
            (vec![json, identity], 403, "forbidden"),
        ] {
            let answer = client.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await;
            answer.problem(status, code);
        }
        client.send("GET", "/internal/knock", &[mark, proof], b"").await.problem(403, "forbidden");
        client.send("GET", "/internal/knock", &[], b"").await.problem(503, "not_active");
    }
    assert_eq!(active.get("/v1/locks").await.json()["locks"], json!([]), "nothing was granted");
    let names = names(&active.get("/v1/status").await.json());
    assert!(!names.iter().any(|name| name.contains("127.0.0.1:1 ")), "{names:?}");
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
    assert_eq!(names(&seen), [r#""second" "standby""#, r#""first" "active""#]);
    until("the active node has heard of the standby", async || {
        names(&active.get("/v1/status").await.json()) == [r#""first" "active""#, r#""second" "standby""#]
    })
    .await;
    let third = Node::start("third", "status").await;
    let everybody = [
        (&active, [r#""first" "active""#, r#""second" "standby""#, r#""third" "standby""#]),
        (&standby, [r#""second" "standby""#, r#""first" "active""#, r#""third" "standby""#]),
        (&third, [r#""third" "standby""#, r#""first" "active""#, r#""second" "standby""#]),
    ];
    for (node, expected) in everybody {
        until("every node knows every other", async || {
            names(&node.get("/v1/status").await.json()) == expected
        })
        .await;
        let status = node.get("/v1/status").await.json();
        assert_eq!(status["durability"], "durable", "also of a standby that was never active: {status}");
        for seen in status["nodes"].as_array().unwrap() {
            assert_eq!((&seen["knownFormat"], &seen["lag"]), (&json!(3), &json!(0)), "{seen}");
            assert_eq!(seen["version"], env!("CARGO_PKG_VERSION"));
            assert!(seen["lastSeenMs"].as_u64().unwrap() < 10_000 && seen["address"].is_string(), "{seen}");
        }
    }
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

    let mut waiting = standby.connect().await;
    let body = json!({"resource": "kept", "ownerId": "bob", "waitMs": 60_000}).to_string();
    waiting
        .write("POST", "/v1/locks/acquire", &[("content-type", "application/json")], body.as_bytes())
        .await;
    until("it waits", async || active.server.handle().status().counts.waiters == 1).await;

    let Node { server, .. } = active;
    server.shutdown().await.unwrap();
    let left = tokio::time::Instant::now();
    let ended = waiting.answer().await;
    // Whichever is first: the active node's own last word, or the standby that sees it go and cannot know more.
    let code = ended.json()["code"].clone();
    assert!(ended.status == 503 && (code == "not_active" || code == "outcome_unknown"), "{ended:?}");
    until("the standby serves", async || standby.role() == Role::Active).await;
    let took = left.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
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

/// Founds a journal as a version did that knew the first format alone. Whoever wants to find it again holds on to its
/// engine, which ends with its last user.
async fn founded_by_an_older_version(cluster: &str) -> Arc<leasehold_testbed::Server> {
    let (data, engine) = (TempDir::new().unwrap(), ETCD.server());
    let url = engine.url().replace("http://", "etcd://");
    let JournalConfig::Etcd(journal) = JournalConfig::from_url(&url, cluster).unwrap() else {
        panic!("the URL is etcd's")
    };
    let mut config = NodeConfig::new("older", data.path());
    (config.known_format, config.shared) = (1, Some(SharedJournal::new("http://127.0.0.1:1")));
    let node =
        leasehold_node::start(config, Arc::new(journal), Arc::new(RealClock), Arc::new(NoObserver)).await;
    node.unwrap().shutdown().await;
    engine
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_finished_once_no_older_node_is_alive() {
    let _engine = founded_by_an_older_version("upgrade").await;
    let (active, standby) = pair("upgrade").await;
    let status = active.get("/v1/status").await.json();
    assert_eq!((&status["format"], &status["knownFormat"]), (&json!(1), &json!(3)));
    // An older node knocks with nothing but its name, and so does whoever it passes on for.
    let old = [("leasehold-forwarded", "old http://127.0.0.1:1")];
    assert_eq!(active.connect().await.send("GET", "/readyz", &old, b"").await.status, 200);
    let request = json!({"actorId": "ada", "reason": "all are new"});
    let knocking = async {
        loop {
            active.connect().await.send("GET", "/readyz", &old, b"").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let refused = tokio::select! {
        () = knocking => unreachable!("it knocks for ever"),
        refused = async { standby.connect().await.post("/v1/upgrade/finish", request.clone()).await } => refused,
    };
    let answer = refused.json();
    assert_eq!((&answer["finished"], &answer["format"]), (&json!(false), &json!(1)), "{answer}");
    assert_eq!(answer["olderNodes"][0]["node"], "old");
    assert_eq!(answer["olderNodes"].as_array().unwrap().len(), 1, "{answer}");

    until("the older node is forgotten", async || {
        names(&active.get("/v1/status").await.json()).iter().all(|name| !name.contains("old"))
    })
    .await;
    let done = active.connect().await.post("/v1/upgrade/finish", request.clone()).await.json();
    assert_eq!((&done["finished"], &done["before"], &done["format"]), (&json!(true), &json!(1), &json!(3)));
    let again = active.connect().await.post("/v1/upgrade/finish", request.clone()).await.json();
    assert_eq!((&again["finished"], &again["before"]), (&json!(true), &json!(3)));
    until("the standby has learnt of it", async || standby.get("/v1/status").await.json()["format"] == 3)
        .await;
    assert_eq!(standby.acquire("r", 0).await.json()["acquired"], true, "with proof, from now on");
    active.connect().await.send("GET", "/readyz", &old, b"").await.problem(503, "not_active");
    let noted = standby.connect().await.post("/v1/backups", request).await.json();
    assert_eq!(noted["auditSeq"], 2, "a standby passes it on: {noted}");
    let audit = active.get("/v1/audit").await.json();
    let actions = [0, 1, 2].map(|entry| audit["entries"][entry]["action"].clone());
    assert_eq!(actions, [json!("UPGRADE_FINISH"), json!("BACKUP"), json!(null)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_on_through_a_standby_to_the_commit() {
    let (trace, caller) = ("2af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let collector = Collector::start();
    let traces = RawTraces { endpoint: Some(collector.url()), ratio: Some(0.0) };
    let (_active, standby) = pair_with("traced", RawConfig { traces, ..RawConfig::default() }).await;
    let traceparent = format!("00-{trace}-{caller}-01");
    let headers = [("content-type", "application/json"), ("traceparent", traceparent.as_str())];
    let body = json!({"resource": "r", "ownerId": "ann"}).to_string();
    let granted = standby.connect().await.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await;
    assert_eq!(granted.json()["acquired"], true);

    let part = |of: &str, name: &str| {
        // Without holding up the servers, which are in this process.
        tokio::task::block_in_place(|| collector.part(trace, of, name))
    };
    let passed_on = part(caller, "POST /v1/locks/acquire");
    let answered = part(&passed_on.span_id, "POST /v1/locks/acquire");
    part(&answered.span_id, "node decide");
    part(&answered.span_id, "journal commit");
}
