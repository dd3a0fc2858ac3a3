//! A user of etcd with the least permission.

use leasehold_journal::conformance::every_place_of_a_password;
use leasehold_journal::{Journal, OpenError, Outcome};
use leasehold_journal_etcd::{EtcdConfig, EtcdJournal};
use leasehold_testbed::etcd;
use leasehold_types::Slot;

use crate::damage::{ask, base64};
use crate::kit::{Node, PATIENT, claim, journal_of, url};

#[tokio::test]
async fn a_user_that_may_use_the_prefix_is_enough() {
    let server = etcd();
    let (from, to) = (base64("/leasehold/main/"), base64("/leasehold/main0"));
    let permission = format!(
        r#"{{"name":"leasehold","perm":{{"permType":"READWRITE","key":"{from}","range_end":"{to}"}}}}"#
    );
    let steps = [
        ("/v3/auth/user/add", r#"{"name":"root","password":"root"}"#),
        ("/v3/auth/role/add", r#"{"name":"root"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/user/add", r#"{"name":"node","password":"secret"}"#),
        ("/v3/auth/role/add", r#"{"name":"leasehold"}"#),
        ("/v3/auth/role/grant", &permission),
        ("/v3/auth/user/grant", r#"{"user":"node","role":"leasehold"}"#),
        ("/v3/auth/enable", "{}"),
    ];
    for (path, body) in steps {
        ask(&server, path, body).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let node = url(&server).replace("etcd://", "etcd://node@");
    every_place_of_a_password(&node, "secret", dir.path(), |url, environment| {
        let config = EtcdConfig::from_url(url, "main", environment).map(|config| config.call_within(PATIENT));
        config.and_then(EtcdJournal::new).map_err(|error| error.to_string())
    })
    .await;

    let as_node = url(&server).replace("etcd://", "etcd://node:secret@");
    let mut node = Node::open(&journal_of(&format!("{as_node}?compact=on"), "main")).await;
    node.commit("allowed").await;
    node.opened.snapshots.begin(node.tail).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(2)).await, Outcome::Committed);
    let refused = journal_of(&url(&server), "main").open(claim()).await;
    let refusal = |error: &OpenError| matches!(error, OpenError::Unavailable(_) | OpenError::Unsuitable(_));
    assert!(refused.as_ref().is_err_and(refusal), "no user at all: {refused:?}");
}
