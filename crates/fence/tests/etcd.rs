//! The etcd fence, on a private server.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::time::Duration;

use leasehold_fence::cas::CasError;
use leasehold_fence::conformance::{CasLines, agreement, cases, race, store};
use leasehold_fence::etcd::{EtcdFence, Operation};
use leasehold_fence::{Fence, FenceError};
use support::{grant, name, race_of, seed, word};
use tonic::transport::Endpoint;

fn connect(url: &str) -> EtcdFence {
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap().timeout(Duration::from_secs(2));
    EtcdFence::new(endpoint.connect_lazy(), "fences/")
}

/// etcd's own client, which knows nothing of ours.
fn etcdctl(url: &str, args: &[&str]) -> String {
    let mut command = std::process::Command::new("etcdctl");
    let output = command.env("ETCDCTL_API", "3").args(["--endpoints", url]).args(args).output();
    String::from_utf8(output.expect("needs the Debian package `etcd-client`").stdout).unwrap()
}

#[tokio::test]
async fn the_transaction_keeps_the_contract() {
    let server = leasehold_testbed::etcd();
    let fence = connect(server.url());
    store(fence.values().store()).await;
    let lines = CasLines(fence.values());
    cases(&lines).await;
    agreement(&lines, seed()).await;
    // Each write of a racing compare-and-set is tried many times: fewer writes, as many writers.
    race(&lines, seed(), race_of(3)).await;
}

#[tokio::test]
async fn the_users_operations_are_in_the_same_transaction() {
    let server = leasehold_testbed::etcd();
    let (etcd, fence) = (connect(server.url()), Fence::of(&name("r")));
    let put =
        |value: &str| vec![Operation::put("a", value), Operation::put("b", value), Operation::delete("c")];
    assert_eq!(word(&etcd.write(&fence, &grant("r", 5).write(), put("five")).await), "admitted");
    assert_eq!(word(&etcd.claim(&fence, &grant("r", 7)).await), "admitted");
    assert_eq!(word(&etcd.write(&fence, &grant("r", 5).write(), put("late")).await), "stale");
    assert_eq!(word(&etcd.write(&fence, &grant("other", 9).write(), put("foreign")).await), "wrong_scope");
    assert_eq!(word(&etcd.write(&fence, None, put("nobody")).await), "missing_token");
    for key in ["a", "b"] {
        assert_eq!(etcdctl(server.url(), &["get", "--print-value-only", key]), "five\n", "{key}");
    }
}

/// A majority that is gone gives no verdict, and the maximum is there when it is back.
#[tokio::test]
async fn a_lost_majority_admits_nobody() {
    let server = leasehold_testbed::etcd_cluster(3);
    let (etcd, fence) = (connect(&server.endpoints()[0]), Fence::of(&name("r")));
    etcd.claim(&fence, &grant("r", 9)).await.unwrap();
    server.kill(1);
    server.kill(2);
    let outcome = etcd.write(&fence, &grant("r", 10).write(), Vec::new()).await;
    assert!(matches!(outcome, Err(FenceError::Store(CasError::Store(_)))), "{outcome:?}");
    server.restart(1);
    let mut answer = etcd.claim(&fence, &grant("r", 8)).await;
    while matches!(answer, Err(FenceError::Store(_))) {
        answer = etcd.claim(&fence, &grant("r", 8)).await;
    }
    assert_eq!(word(&answer), "stale");
}
