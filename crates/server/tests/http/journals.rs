//! The embedded journal behind a server: restart, directory in use, backup, restore, recover; and what is logged.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use leasehold_server::logs::{LogFormat, LogSink};
use leasehold_server::maintenance::{Backup, Site};
use leasehold_server::{Components, Operator, RawConfig, ServeError, Server, maintenance};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Client, TestServer};

pub(crate) async fn start(data: &Path) -> Result<Server, ServeError> {
    let raw = RawConfig {
        listen: Some("127.0.0.1:0".into()),
        data: Some(data.to_owned()),
        node: Some("test".into()),
        ..RawConfig::default()
    };
    let config = raw.resolve().unwrap();
    let components = Components::new(&config, LogSink::none());
    Server::start(config, components).await
}

pub(crate) async fn acquire(server: &Server, resource: &str) -> serde_json::Value {
    let mut client = Client::connect(server.address()).await;
    client.post("/v1/locks/acquire", json!({"resource": resource, "ownerId": "ann"})).await.json()
}

pub(crate) fn operator() -> Operator {
    Operator { actor: "op".into(), reason: "drill".into() }
}

#[tokio::test]
async fn a_directory_has_one_server_and_keeps_what_was_granted() {
    let data = TempDir::new().unwrap();
    let first = start(data.path()).await.unwrap();
    let grant = acquire(&first, "a").await;
    let refused = start(data.path()).await.unwrap_err();
    assert!(refused.is_refusal() && refused.hint().is_some(), "{refused}");
    assert!(refused.to_string().contains("in use"), "{refused}");
    first.shutdown().await.unwrap();
    let second = start(data.path()).await.unwrap();
    let mut client = Client::connect(second.address()).await;
    let record = client.get(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await.json();
    assert_eq!(record["fencingToken"], grant["fencingToken"]);
    second.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_address_in_use_is_refused_before_anything_is_touched() {
    let (first_data, second_data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let first = start(first_data.path()).await.unwrap();
    let raw = RawConfig {
        listen: Some(first.address().to_string()),
        data: Some(second_data.path().to_owned()),
        ..RawConfig::default()
    };
    let config = raw.resolve().unwrap();
    let refused = Server::start(config.clone(), Components::new(&config, LogSink::none())).await.unwrap_err();
    assert!(refused.is_refusal() && refused.hint().unwrap().contains("--listen"), "{refused}");
    assert_eq!(std::fs::read_dir(second_data.path()).unwrap().count(), 0, "no journal was made");
    start(second_data.path()).await.unwrap().shutdown().await.unwrap();
    first.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_backup_is_restored_above_every_token() {
    let (data, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = start(data.path()).await.unwrap();
    acquire(&server, "a").await;
    let file = elsewhere.path().join("backup");
    let site = Site::embedded(data.path());
    let summary = Backup::prepare(&site, &file).await.unwrap().take().await.unwrap();
    assert!(summary.tail.slot.0 >= 1);
    let later = acquire(&server, "b").await;
    server.shutdown().await.unwrap();

    let restored_to = elsewhere.path().join("restored");
    let recovered = maintenance::restore(&file, &Site::embedded(&restored_to), operator()).await.unwrap();
    let restored = start(&restored_to).await.unwrap();
    let next = acquire(&restored, "c").await;
    assert!(
        next["fencingToken"].as_u64() > later["fencingToken"].as_u64(),
        "above what the backup never saw"
    );
    assert!(next["fencingToken"].as_u64().unwrap() > recovered.token_floor);
    assert_eq!(acquire(&restored, "a").await["acquired"], false, "what was held is held");
    let mut client = Client::connect(restored.address()).await;
    let entry = client.get("/v1/audit").await.json()["entries"][0].clone();
    assert_eq!(entry["action"], "RECOVER");
    let restored_from = format!("restore of backup {} into embedded in ", file.display());
    assert!(entry["reason"].as_str().unwrap().starts_with(&restored_from), "{entry}");
    restored.shutdown().await.unwrap();
    let again = maintenance::restore(&file, &Site::embedded(&restored_to), operator()).await.unwrap_err();
    assert!(again.hint().is_some(), "{again}");
}

#[tokio::test]
async fn recovery_raises_the_generation() {
    let data = TempDir::new().unwrap();
    let missing = maintenance::recover(&Site::embedded(data.path()), operator(), None).await.unwrap_err();
    assert!(missing.to_string().contains("no journal"), "{missing}");
    let server = start(data.path()).await.unwrap();
    let before = acquire(&server, "a").await;
    let generation = server.handle().status().generation;
    server.shutdown().await.unwrap();
    let recovered = maintenance::recover(&Site::embedded(data.path()), operator(), None).await.unwrap();
    assert!(recovered.generation > generation);
    let server = start(data.path()).await.unwrap();
    assert_eq!(server.handle().status().generation, recovered.generation);
    let after = acquire(&server, "b").await;
    assert!(after["fencingToken"].as_u64().unwrap() > before["fencingToken"].as_u64().unwrap() + (1 << 39));
    server.shutdown().await.unwrap();
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn every_lock_event_is_logged_and_bad_input_is_no_error_of_ours() {
    let lines = Lines::default();
    let sink = LogSink::to(lines.clone(), LogFormat::Json).unwrap();
    let subscriber = tracing_subscriber::fmt().json().with_writer(sink.clone()).finish();
    // For this thread, on which the test's own runtime runs every task of the server.
    let _guard = tracing::subscriber::set_default(subscriber);
    let journal =
        Arc::new(leasehold_journal::MemoryJournal::with_durability(leasehold_types::Durability::Durable));
    let server = TestServer::logging(journal, RawConfig::default(), sink.clone()).await;
    let grant = server.acquire("a", "ann").await;
    server.delete(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await;
    server.acquire("a", "bob").await;
    server.post("/v1/resources/a/force-release", json!({"actorId": "o", "reason": "r", "all": true})).await;
    for body in [json!({"resource": ""}), json!([]), json!({"resource": "a", "ownerId": "o", "ttlMs": -1})] {
        assert_eq!(server.post("/v1/locks/acquire", body).await.status, 400);
    }
    let mut client = server.connect().await;
    client.send("POST", "/v1/locks/acquire", &[("content-length", "99999999")], b"").await;
    server.get("/nowhere").await;
    sink.flush();
    let text = lines.text();
    for event in ["lock_acquired", "lock_released", "lock_force_released"] {
        assert!(text.contains(&format!("\"event\":\"{event}\"")), "{event} in {text}");
    }
    assert!(!text.contains(grant["leaseId"].as_str().unwrap()), "lease ids are shortened");
    assert!(!text.contains("\"ERROR\"") && !text.contains("\"WARN\""), "{text}");
}
