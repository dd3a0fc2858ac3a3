//! Settings that are read again while the server runs.

use std::time::Duration;

use leasehold_tests::{Server, free_port, until};
use rustix::process::Signal;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_hang_up_reads_policies_and_quotas_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("leasehold.toml");
    std::fs::write(&config, "").unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let mut server = Server::spawn_with(free_port(), &dir.path().join("data"), &more);
    server.wait_ready();
    let acquire =
        |name: &str| server.http().post("/v1/locks/acquire", &json!({"resource": name, "ownerId": "w"}));
    assert!(acquire("orders/1").unwrap().is_acquired());

    std::fs::write(&config, "undeclared = \"refuse\"\n[tenants.default]\nlocks = 1\n").unwrap();
    server.signal(Signal::HUP);
    until("the new settings count", PATIENCE, || acquire("orders/1").ok().filter(|no| no.status == 403));
    until("the table has them too", PATIENCE, || {
        server.http().get("/v1/audit").ok().filter(|audit| audit.body.contains("locks 1"))
    });

    std::fs::write(&config, "[tenants.default]\nlocks = one\n").unwrap();
    server.signal(Signal::HUP);
    until("it is said that they cannot be used", PATIENCE, || {
        server.log().contains("settings_not_reloaded").then_some(())
    });
    assert_eq!(acquire("orders/1").unwrap().status, 403, "the old ones stay");

    std::fs::write(&config, "[tenants.default]\nlocks = 1\n").unwrap();
    server.signal(Signal::HUP);
    until("the new quota is met", PATIENCE, || {
        let refused = acquire("orders/2").ok()?;
        (refused.code() == "quota_exceeded").then_some(())
    });
    let held = server.http().held("").unwrap();
    assert_eq!(held.len(), 1, "nothing was taken away: {held:?}");
}
