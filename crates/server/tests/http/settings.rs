//! Policies and quotas are settings of the nodes; that they changed is in the audit log.

use std::sync::Arc;

use leasehold_journal::MemoryJournal;
use leasehold_server::RawConfig;
use leasehold_types::Durability;
use serde_json::Value;

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
