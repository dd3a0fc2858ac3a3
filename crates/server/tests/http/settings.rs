//! Policies and quotas are settings of the nodes; that they changed is in the audit log.

use std::sync::Arc;

use leasehold_journal::MemoryJournal;
use leasehold_server::RawConfig;
use leasehold_types::Durability;
use serde_json::{Value, json};

use crate::support::TestServer;

/// The audit log of a server that is started with these settings and stopped again.
async fn audit(journal: &Arc<MemoryJournal>, settings: &str) -> Vec<Value> {
    let server = TestServer::on(Arc::clone(journal), RawConfig::from_toml(settings).unwrap()).await;
    let entries = server.get("/v1/audit").await.json()["entries"].as_array().unwrap().clone();
    assert_eq!(server.get("/v1/audit/verify").await.json()["intact"], true);
    server.server.shutdown().await.unwrap();
    entries
}

#[tokio::test]
async fn other_policies_and_quotas_leave_an_audit_entry() {
    let journal = Arc::new(MemoryJournal::with_durability(Durability::Durable));
    assert!(audit(&journal, "").await.is_empty(), "nothing is declared, and nothing was");
    let declared = "[[policies]]\nprefix = \"billing/\"\nttl = \"30s\"\n[tenants.acme]\nlocks = 5\n";
    let entries = audit(&journal, declared).await;
    let [change] = &entries[..] else { panic!("one entry: {entries:?}") };
    assert_eq!(
        (&change["action"], &change["actorId"]),
        (&"SETTINGS_CHANGE".into(), &"config of test".into())
    );
    let reason = change["reason"].as_str().unwrap();
    assert!(
        reason.contains("policy billing/ ttl 30000 ms") && reason.contains("tenant acme locks 5"),
        "{reason}"
    );
    assert_eq!(audit(&journal, declared).await.len(), 1, "the same again is no change");
    let entries = audit(&journal, &declared.replace("5", "6")).await;
    assert_eq!(entries.len(), 2);
    assert!(entries[1]["reason"].as_str().unwrap().contains("locks 6"), "{entries:?}");
    let entries = audit(&journal, "").await;
    assert!(entries[2]["reason"].as_str().unwrap().starts_with("no policies, no quotas"), "{entries:?}");
}

#[tokio::test]
async fn policies_and_quotas_change_while_the_server_runs() {
    let server = TestServer::start().await;
    let acquire =
        async |name: &str| server.post("/v1/locks/acquire", json!({"resource": name, "ownerId": "w"})).await;
    let declare = async |text: &str| {
        server.server.declare(&RawConfig::from_toml(text).unwrap().resolve().unwrap()).await;
    };
    assert_eq!(acquire("billing/1").await.json()["ttlMs"], 15_000);
    let stricter = "undeclared = \"refuse\"\n[[policies]]\nprefix = \"billing/\"\nttl = \"30s\"\nfence = \"postgres\"\n\
                    [tenants.default]\nlocks = 2\nwatchers = 0\n";
    declare(stricter).await;
    let granted = acquire("billing/2").await.json();
    assert_eq!((&granted["ttlMs"], &granted["guarantee"]), (&30_000.into(), &"fenced".into()), "{granted}");
    acquire("billing/3").await.problem(429, "quota_exceeded");
    acquire("orders/1").await.problem(403, "forbidden");
    server.get("/v1/events").await.problem(429, "quota_exceeded");
    assert_eq!(server.get("/v1/identity").await.json()["quota"]["locks"], 2);
    server
        .until_counted(
            "lock_acquire_success_total{tenant=\"default\",prefix=\"billing/\",mode=\"exclusive\"} 1",
        )
        .await;
    declare(stricter).await;
    declare("").await;
    assert_eq!(acquire("billing/3").await.json()["ttlMs"], 15_000);
    assert_eq!(acquire("orders/1").await.status, 200);
    let noted = server.get("/v1/audit").await.json()["entries"].as_array().unwrap().len();
    assert_eq!(noted, 2, "the same again is no change");
}
