//! The user that `deploy/etcd/user.sh` makes: enough for the nodes of one cluster, and not more.

use std::io::Write as _;
use std::process::{Command, Stdio};

use leasehold_journal::conformance::every_place_of_a_password;
use leasehold_journal::{Journal, OpenError, Outcome};
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::{Server, etcd};
use leasehold_types::Slot;

use crate::damage::ask;
use crate::kit::{Node, PATIENT, claim, journal_of, url};

/// An etcd that asks who one is, with a root user.
async fn with_users() -> Server {
    let server = etcd();
    let steps = [
        ("/v3/auth/user/add", r#"{"name":"root","password":"root"}"#),
        ("/v3/auth/role/add", r#"{"name":"root"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/enable", "{}"),
    ];
    for (path, body) in steps {
        ask(&server, path, body).await;
    }
    server
}

/// As an operator would run it.
fn make_user(server: &Server, cluster: &str, password: &str) {
    let mut command = Command::new("sh");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/etcd/user.sh")).arg(cluster);
    command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", server.url()).env("ETCDCTL_USER", "root:root");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut script = command.spawn().unwrap();
    writeln!(script.stdin.take().unwrap(), "{password}").unwrap();
    let output = script.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_user_of_a_cluster_may_use_its_keys_and_no_others() {
    let server = with_users().await;
    make_user(&server, "main", "secret");
    let dir = tempfile::tempdir().unwrap();
    let node = url(&server).replace("etcd://", "etcd://leasehold@");
    every_place_of_a_password(&node, "secret", dir.path(), |url, environment| {
        let config = EtcdConfig::from_url(url, "main", environment).map(|config| config.call_within(PATIENT));
        config.and_then(EtcdJournal::new).map_err(|error| error.to_string())
    })
    .await;

    let as_node = url(&server).replace("etcd://", "etcd://leasehold:secret@");
    let mut node = Node::open(&journal_of(&format!("{as_node}?compact=on"), "main")).await;
    node.commit("allowed").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(2)).await, Outcome::Committed);
    let elsewhere = journal_of(&as_node, "other").open(claim()).await;
    assert!(matches!(elsewhere, Err(OpenError::Refused(_))), "keys of others: {elsewhere:?}");
    let nobody = journal_of(&url(&server), "main").open(claim()).await;
    assert!(matches!(nobody, Err(OpenError::Refused(_))), "no user at all: {nobody:?}");
}
