//! Backups and the audit log: noted by a node, or in a journal that no node serves, and held by the copy.

use std::path::Path;
use std::sync::Arc;

use leasehold_journal::MemoryJournal;
use leasehold_node::{NoObserver, NodeConfig, RealClock};
use leasehold_server::maintenance::{self, Backup, MaintenanceError, Site};
use leasehold_server::{BackupNote, RawConfig, Server};
use leasehold_types::{ClusterId, Durability};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::journals::{acquire, operator, start};
use super::security::Protected;
use crate::support::{Client, TestServer};

fn request() -> Value {
    json!({"actorId": "ada", "reason": "nightly"})
}

async fn actions(server: &Server) -> Vec<Value> {
    let audit = Client::connect(server.address()).await.get("/v1/audit").await.json();
    audit["entries"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect()
}

#[tokio::test]
async fn a_node_notes_a_backup_with_the_caller() {
    let protected = Protected::start().await;
    let admin = protected.as_caller(&protected.admin);
    let answer = admin.post("/v1/backups", request()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let (noted, status) = (answer.json(), admin.get("/v1/status").await.json());
    assert_eq!(noted["clusterId"], status["clusterId"]);
    let audit = admin.get("/v1/audit").await.json();
    let entry = audit["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&entry["action"], &entry["seq"]), (&json!("BACKUP"), &noted["auditSeq"]));
    assert_eq!((&entry["actorId"], &entry["reason"]), (&json!("ada"), &json!("nightly")));
    assert_eq!(entry["identity"], admin.get("/v1/identity").await.json()["name"]);
    assert_eq!((&entry["tenant"], &entry["resource"]), (&json!(""), &json!(null)));
    assert_eq!(entry["fencingTokens"], json!([]));
    assert_eq!(admin.get("/v1/audit/verify").await.json()["intact"], true);

    let operator = protected.credential("op", "default", "operator").await;
    protected.as_caller(&operator).post("/v1/backups", request()).await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_note_needs_a_name_and_a_reason_and_a_key_of_its_own() {
    let server = TestServer::start().await;
    for body in [json!({"actorId": "ada"}), json!({"actorId": "ada", "reason": ""}), json!({})] {
        server.post("/v1/backups", body).await.problem(400, "bad_request");
    }
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let body = json!({"resource": "a", "ownerId": "ann"}).to_string();
    let mut client = server.connect().await;
    assert_eq!(client.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await.status, 200);
    let taken = client.send("POST", "/v1/backups", &headers, request().to_string().as_bytes()).await;
    taken.problem(422, "idempotency_mismatch");
    assert_eq!(actions(&server.server).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_journal_of_an_older_format_takes_no_note_until_it_is_raised() {
    let journal = Arc::new(MemoryJournal::with_durability(Durability::Durable));
    let data = TempDir::new().unwrap();
    let mut config = NodeConfig::new("older", data.path());
    config.known_format = 2;
    let older = leasehold_node::start(config, journal.clone(), Arc::new(RealClock), Arc::new(NoObserver));
    older.await.unwrap().shutdown().await;
    let server = TestServer::on(journal, RawConfig::default()).await;
    assert_eq!(server.get("/v1/status").await.json()["format"], 2);
    let refused = server.post("/v1/backups", request()).await;
    refused.problem(503, "store_unavailable");
    assert!(refused.text().contains("upgrade finish"), "{refused:?}");
    assert_eq!(server.post("/v1/upgrade/finish", request()).await.json()["before"], 2);
    assert_eq!(server.post("/v1/backups", request()).await.json()["auditSeq"], 2);
}

async fn taken(site: &Site, file: &Path) {
    Backup::prepare(site, file).await.unwrap().take().await.unwrap();
}

#[tokio::test]
async fn a_copy_beside_a_running_server_holds_its_own_entry() {
    let (data, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = start(data.path()).await.unwrap();
    acquire(&server, "a").await;
    let noted = Client::connect(server.address()).await.post("/v1/backups", request()).await.json();
    assert_eq!(noted["auditSeq"], 1);
    let (file, restored_to) = (elsewhere.path().join("backup"), elsewhere.path().join("restored"));
    taken(&Site::embedded(data.path()), &file).await;
    server.shutdown().await.unwrap();

    maintenance::restore(&file, &Site::embedded(&restored_to), operator()).await.unwrap();
    let restored = start(&restored_to).await.unwrap();
    assert_eq!(actions(&restored).await, ["BACKUP", "RECOVER"]);
    restored.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_journal_that_nobody_serves_is_noted_in_directly_and_goes_on_with_its_tokens() {
    let data = TempDir::new().unwrap();
    let (site, file) = (Site::embedded(data.path()), data.path().join("backup"));
    let server = start(data.path()).await.unwrap();
    let before = acquire(&server, "a").await["fencingToken"].as_u64().unwrap();
    let served = Backup::prepare(&site, &file).await.unwrap().note_unserved(operator()).await.unwrap_err();
    assert!(served.to_string().contains("in use") && served.hint().is_some(), "{served}");
    server.shutdown().await.unwrap();

    let backup = Backup::prepare(&site, &file).await.unwrap();
    let noted = backup.note_unserved(operator()).await.unwrap();
    assert_eq!(noted, BackupNote::Noted { audit_seq: 1 });
    backup.take().await.unwrap();
    let server = start(data.path()).await.unwrap();
    assert_eq!(actions(&server).await, ["BACKUP"]);
    assert_eq!(acquire(&server, "b").await["fencingToken"], before + 1, "no token was raised");
    server.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_node_of_another_journal_and_a_file_that_is_there_are_refused_before_anything_is_noted() {
    let data = TempDir::new().unwrap();
    let (site, file) = (Site::embedded(data.path()), data.path().join("backup"));
    let server = start(data.path()).await.unwrap();
    let cluster = server.handle().status().cluster;
    let backup = Backup::prepare(&site, &file).await.unwrap();
    backup.must_be_served_by(cluster).unwrap();
    let other = backup.must_be_served_by(ClusterId::from_bytes([9; 16])).unwrap_err();
    assert!(matches!(other, MaintenanceError::OtherCluster { journal, .. } if journal == cluster), "{other}");
    assert!(other.hint().is_some());
    std::fs::write(&file, "precious").unwrap();
    let there = Backup::prepare(&site, &file).await.unwrap_err();
    assert!(there.to_string().contains("there is a file already"), "{there}");
    assert_eq!(actions(&server).await, [] as [Value; 0]);
    server.shutdown().await.unwrap();
}
