//! What the test server asks its own node.

use std::time::Duration;

use leasehold_core::{ForceRelease, ForceTarget, Operator, Query, Reply};
use leasehold_node::Handle;
use leasehold_types::{LeaseId, ResourceName};

pub(super) use leasehold_core::Command;

use super::call;

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).expect("a valid resource name")
}

async fn explained(node: &Handle, resource: &str) -> Box<leasehold_core::Explained> {
    let query = Command::Query(Query::Explain(name(resource)));
    match node.submit(call(query)).await.map(leasehold_node::Durable::into_inner) {
        Ok(Reply::Explained(explained)) => explained,
        other => panic!("the node answers a query: {other:?}"),
    }
}

/// The longest that any holder of the resource has left; `None` when it is free.
pub(super) async fn explain(node: &Handle, resource: &str) -> Option<Duration> {
    let holders = explained(node, resource).await.holders;
    holders.iter().map(|view| Duration::from_millis(view.remaining_ms)).max()
}

/// How many wait.
pub(super) async fn waiters(node: &Handle, resource: &str) -> usize {
    explained(node, resource).await.waiters.len()
}

/// Gives a lease back.
pub(super) async fn released(node: &Handle, lease_id: LeaseId) {
    match node.submit(call(Command::Release { lease_id })).await.map(leasehold_node::Durable::into_inner) {
        Ok(Reply::Released { .. }) => {}
        other => panic!("the node answers a release: {other:?}"),
    }
}

/// Forces every holder out.
pub(super) async fn forced(node: &Handle, resource: &str) {
    let force = ForceRelease {
        resource: name(resource),
        target: ForceTarget::All,
        skip_lock_delay: true,
        operator: Operator { actor: "test".into(), reason: "a test takes it away".into() },
    };
    match node.submit(call(Command::ForceRelease(force))).await.map(leasehold_node::Durable::into_inner) {
        Ok(Reply::ForceReleased { .. }) => {}
        other => panic!("the node answers a force-release: {other:?}"),
    }
}
