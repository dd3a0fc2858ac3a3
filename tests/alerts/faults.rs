//! The faults themselves, each on a server of its own.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold_fence::storage::Storage;
use leasehold_tests::{Answer, Http, Server, free_port, until};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::rules::{Course, assert_fires};

/// The alerts that a test below makes fire.
pub(crate) const TRIED: &[&str] = &[
    "DualOwner",
    "ExpiredWhileExecutingRepeated",
    "FencingRejects",
    "FencingRejectsWithLatency",
    "ForceRelease",
    "HotPrefix",
    "LongHeld",
    "Regression",
    "RenewalFailures",
    "RenewalsLate",
    "StoreUnavailable",
    "TakeOvers",
    "WriteWithoutToken",
];

const PATIENCE: Duration = Duration::from_secs(60);

/// Talks to a server without holding up the runtime that it runs on.
async fn talk<T: Send + 'static>(
    address: SocketAddr,
    with: impl FnOnce(&mut Http) -> T + Send + 'static,
) -> T {
    tokio::task::spawn_blocking(move || with(&mut Http::at(address))).await.unwrap()
}

async fn page(address: SocketAddr) -> String {
    talk(address, |http| http.get("/metrics").unwrap().body).await
}

async fn acquire(address: SocketAddr, resource: &'static str, ttl_ms: u64) -> String {
    let body = json!({"resource": resource, "ownerId": "ann", "ttlMs": ttl_ms});
    let answer = talk(address, move |http| http.post("/v1/locks/acquire", &body).unwrap()).await;
    answer.json()["leaseId"].as_str().unwrap_or_default().to_owned()
}

async fn renew(address: SocketAddr, lease: &str) -> Answer {
    let path = format!("/v1/locks/{lease}/renew");
    talk(address, move |http| http.post(&path, &json!({})).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_held_for_over_an_hour() {
    let server = TestServer::start().await;
    let address = server.address();
    let before = page(address).await;
    let lease = acquire(address, "jobs/a", 120_000).await;
    server.jump(Duration::from_secs(61)).await;
    assert_eq!(renew(address, &lease).await.status, 200);
    // It goes on like that.
    assert_fires("LongHeld", &[&before], &[&page(address).await], Course::Again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_renews_late_and_one_that_renews_what_is_over() {
    let server = TestServer::start().await;
    let address = server.address();
    let lease = acquire(address, "jobs/a", 60_000).await;
    let before = page(address).await;
    server.jump(Duration::from_secs(54)).await;
    assert_fires("RenewalsLate", &[&before], &[&page(address).await], Course::Step);
    server.expire("jobs/a").await;
    let before = page(address).await;
    for _ in 0..3 {
        assert_eq!(renew(address, &lease).await.status, 410);
    }
    assert_fires("RenewalFailures", &[&before], &[&page(address).await], Course::Step);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_end_while_their_holder_works() {
    let server = TestServer::start().await;
    let before = page(server.address()).await;
    let client = server.client();
    let mut guards = Vec::new();
    for resource in ["jobs/a", "jobs/b", "jobs/c"] {
        guards.push(client.acquire(resource).ttl(Duration::from_secs(2)).await.unwrap());
    }
    server.cut();
    for guard in &guards {
        guard.lost().await;
    }
    server.heal();
    // What was seen is reported with the next that the server hears of this client.
    let guard = client.acquire("jobs/d").ttl(Duration::from_secs(6)).await.unwrap();
    until_counted(server.address(), "lease_expired_while_executing_total 3").await;
    let after = page(server.address()).await;
    drop(guard);
    assert_fires("ExpiredWhileExecutingRepeated", &[&before], &[&after], Course::Step);
}

async fn until_counted(address: SocketAddr, line: &'static str) {
    talk(address, move |http| {
        until(line, PATIENCE, || http.get("/metrics").ok().filter(|page| page.body.contains(line)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_wants_the_same_and_an_operator_helps() {
    let server = TestServer::start().await;
    let address = server.address();
    acquire(address, "jobs/a", 60_000).await;
    let before = page(address).await;
    talk(address, |http| {
        for _ in 0..400 {
            let body = json!({"resource": "jobs/a", "ownerId": "bob"});
            assert!(!http.post("/v1/locks/acquire", &body).unwrap().is_acquired());
        }
    })
    .await;
    let after = page(address).await;
    assert_fires("HotPrefix", &[&before], &[&after], Course::Again);
    let before = after;
    server.force_release("jobs/a").await;
    assert_fires("ForceRelease", &[&before], &[&page(address).await], Course::Step);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_active_node_changes_again_and_again() {
    let mut server = TestServer::start().await;
    let before = page(server.address()).await;
    for _ in 0..3 {
        server.restart().await;
    }
    assert_fires("TakeOvers", &[&before], &[&page(server.address()).await], Course::Step);
}

#[test]
fn an_engine_that_stands_still() {
    let engine = leasehold_testbed::etcd();
    let data = TempDir::new().unwrap();
    let journal = engine.url().replace("http://", "etcd://");
    let mut server = Server::spawn_with(free_port(), &data.path().join("node"), &["--journal", &journal]);
    server.wait_ready();
    let page = || server.http().get("/metrics").unwrap().body;
    let before = until("the node is active", PATIENCE, || {
        Some(page()).filter(|page| page.contains("node_role{role=\"active\"} 1"))
    });
    engine.pause(0);
    // Without an engine a node is not active for long; until it has noticed, it is stalled.
    let after = until("the node says so", PATIENCE, || {
        Some(page())
            .filter(|page| page.contains("node_stalled 1") || page.contains("node_role{role=\"active\"} 0"))
    });
    engine.resume(0);
    assert_fires("StoreUnavailable", &[&before], &[&after], Course::Step);
}

#[test]
fn a_journal_that_was_recovered() {
    let room = TempDir::new().unwrap();
    let data = room.path().join("node");
    let server = Server::start(&data);
    let before = server.http().get("/metrics").unwrap().body;
    let port = server.port();
    assert!(server.stop().success());
    let recovered = std::process::Command::new(leasehold_tests::binary::path())
        .args(["recover", "--actor", "ann", "--reason", "restored", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
    let server = Server::start_on(port, &data);
    let after = server.http().get("/metrics").unwrap().body;
    assert_fires("Regression", &[&before], &[&after], Course::Step);
}

/// A storage service whose fence has seen token 7.
struct Fenced {
    address: SocketAddr,
    _files: TempDir,
}

impl Fenced {
    async fn start() -> Self {
        let files = TempDir::new().unwrap();
        let storage = Storage::open(files.path()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(storage.serve(listener, std::future::pending()));
        let fenced = Self { address, _files: files };
        assert_eq!(fenced.write(7).await, 200);
        fenced
    }

    async fn write(&self, token: u64) -> u16 {
        let payload = json!({"filePath": "a", "mutationType": "PUT", "bytes": "YQ=="});
        let body = json!({"resourceId": "jobs/a", "fencingToken": token, "step": 1, "writePayload": payload});
        talk(self.address, move |http| http.post("/v1/writes", &body).unwrap().status).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_reports_an_old_token() {
    let server = TestServer::start().await;
    let before = page(server.address()).await;
    let rejection = json!({"resource": "jobs/a", "fencingToken": 6, "highestToken": 7});
    let report = json!({"prefix": "jobs/", "enforces": true, "rejections": [rejection]});
    let told = talk(server.address(), move |http| http.post("/v1/fences/report", &report).unwrap()).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert_fires("DualOwner", &[&before], &[&page(server.address()).await], Course::Step);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_renews_what_is_anothers_by_now() {
    let server = TestServer::start().await;
    let address = server.address();
    let old = acquire(address, "jobs/a", 60_000).await;
    server.expire("jobs/a").await;
    acquire(address, "jobs/a", 60_000).await;
    let before = page(address).await;
    assert_eq!(renew(address, &old).await.status, 410);
    until_counted(address, "lock_dual_owner_suspected_total{tenant=\"default\",prefix=\"jobs\"} 1").await;
    assert_fires("DualOwner", &[&before], &[&page(address).await], Course::Step);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_writer_at_a_fence_also_while_renewals_are_late() {
    let (server, fenced) = (TestServer::start().await, Fenced::start().await);
    acquire(server.address(), "jobs/a", 60_000).await;
    let before = [page(server.address()).await, page(fenced.address).await];
    assert_eq!(fenced.write(6).await, 409);
    server.jump(Duration::from_secs(54)).await;
    let after = [page(server.address()).await, page(fenced.address).await];
    let (before, after) = (before.each_ref().map(String::as_str), after.each_ref().map(String::as_str));
    assert_fires("FencingRejects", &before, &after, Course::Step);
    assert_fires("FencingRejectsWithLatency", &before, &after, Course::Step);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_a_token() {
    let fenced = Fenced::start().await;
    let room = TempDir::new().unwrap();
    let (listen, admin) = (local(free_port()), local(free_port()));
    let proxy = std::process::Command::new(leasehold_tests::binary::path())
        .args(["fence", "proxy", "--stage", "require", "--lock", "/v1/{any}=jobs/{any}"])
        .args(["--upstream", &format!("http://{}", fenced.address)])
        .args(["--state", &format!("sqlite:{}", room.path().join("state.db").display())])
        .args(["--listen", &listen.to_string(), "--admin", &admin.to_string()])
        .spawn()
        .unwrap();
    let _proxy = Ended(proxy);
    let ready = talk(admin, |http| until("the proxy is there", PATIENCE, || http.get("/metrics").ok()));
    let before = ready.await.body;
    let status = talk(listen, |http| http.post("/v1/writes", &json!({})).unwrap().status).await;
    assert!((400..500).contains(&status), "{status}");
    assert_fires("WriteWithoutToken", &[&before], &[&page(admin).await], Course::Step);
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A process that ends with its test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
