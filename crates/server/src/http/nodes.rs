//! Nodes among themselves: the list of those that are alive, the knock by which they learn of each other, and the end of
//! an upgrade, which needs all of them to know the newer format.

use std::collections::BTreeSet;

use http::HeaderMap;
use leasehold_api as api;
use leasehold_api::{NodeSeen, Problem};
use leasehold_node::{Role, Status};

use super::answer::{Answer, Failure, json};
use super::forward::not_active;
use super::received::Received;
use super::{App, convert, draining};
use crate::forwarding::is_forwarded;
use crate::peers::EVERYBODY_KNOCKED;

/// Where standbys knock. Not for clients: whoever asks proves that it is a node, where nodes have a secret.
pub(crate) const KNOCK_PATH: &str = "/internal/knock";

/// Answers a knock with everybody who is known here. Only the active node is knocked at.
pub(super) fn knock(app: &App, headers: &HeaderMap) -> Result<Answer, Failure> {
    let status = app.handle.status();
    if !is_forwarded(headers) || status.role == Role::Standby {
        return Err(not_active("only nodes knock, and at the active node").into());
    }
    Ok(json(&seen(app, &status)))
}

/// This node first, then those it knows of: the active node has heard of those that knock, a standby was told by it.
pub(super) fn seen(app: &App, status: &Status) -> Vec<NodeSeen> {
    let mut nodes = vec![this(app, status)];
    match status.role {
        Role::Active => nodes.extend(app.peers.heard()),
        Role::Standby => {
            let told = app.peers.told();
            if let Some(active) = status.active.as_ref().filter(|active| !active.here) {
                let is_it = |node: &&NodeSeen| node.address.as_deref() == Some(&*active.url);
                nodes.push(told.iter().find(is_it).cloned().unwrap_or_else(|| NodeSeen {
                    node: active.node.to_string(),
                    role: api::Role::Active,
                    address: Some(active.url.to_string()),
                    version: None,
                    known_format: status.format,
                    lag: 0,
                    last_seen_ms: 0,
                }));
            }
            // Who else was active when this was told may not be it any more.
            let others = told.into_iter().filter(|node| node.role == api::Role::Standby);
            nodes.extend(others.filter(|node| node.address.as_deref() != Some(&*app.address)));
        }
    }
    each_once(nodes)
}

/// Each address once: what comes first is newer. A node that has just taken over is still told of as the standby that it
/// was. Names do not tell nodes apart: they are for people.
fn each_once(nodes: Vec<NodeSeen>) -> Vec<NodeSeen> {
    let mut addresses = BTreeSet::new();
    let is_new = |node: &NodeSeen| node.address.is_none() || addresses.insert(node.address.clone());
    nodes.into_iter().filter(is_new).collect()
}

fn this(app: &App, status: &Status) -> NodeSeen {
    NodeSeen {
        node: status.node.to_string(),
        role: role(status),
        address: Some(app.address.clone()),
        version: Some(crate::VERSION.to_owned()),
        known_format: status.known_format,
        lag: status.lag,
        last_seen_ms: 0,
    }
}

/// The role as it is told.
pub(super) fn role(status: &Status) -> api::Role {
    match status.role {
        Role::Active => api::Role::Active,
        Role::Standby => api::Role::Standby,
    }
}

/// `POST /v1/upgrade/finish`.
pub(super) async fn finish_upgrade(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    // Raising to the same format twice is the same as once; the key is still checked.
    let (_, request) = received.change::<api::UpgradeFinishRequest>().await?;
    let operator = convert::operator(&request.actor_id, &request.reason)?;
    until_everybody_knocked(app).await?;
    let status = app.handle.status();
    let older_nodes = older(app, &status);
    let (mut finished, mut format, mut before) = (false, status.format, status.format);
    if older_nodes.is_empty() {
        let raised = app.handle.raise_format(operator, app.identity()).await;
        let raised = raised.map_err(convert::submit_problem)?;
        (finished, format, before) = (true, raised.format, raised.before);
    }
    Ok(json(&api::UpgradeFinishAnswer { finished, format, before, older_nodes }))
}

/// Nodes that would have to stop if the format were raised.
fn older(app: &App, status: &Status) -> Vec<NodeSeen> {
    let mut nodes = app.peers.heard();
    nodes.retain(|node| node.known_format < status.known_format);
    nodes
}

/// A node that has just become active has not heard of everybody yet.
async fn until_everybody_knocked(app: &App) -> Result<(), Problem> {
    let is_alone = app.handle.status().active.is_none();
    let left = (app.since + EVERYBODY_KNOCKED).saturating_sub(app.peers.now());
    if is_alone || left.is_zero() {
        return Ok(());
    }
    let mut drain = app.drain.clone();
    tokio::select! {
        () = tokio::time::sleep(left) => Ok(()),
        () = draining(&mut drain) => Err(not_active("the active node changed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_took_over_is_not_listed_as_the_standby_that_it_was() {
        let node = |role, address: &str, last_seen_ms| NodeSeen {
            node: "locks".to_owned(),
            role,
            address: Some(address.to_owned()),
            version: None,
            known_format: 3,
            lag: 0,
            last_seen_ms,
        };
        let (here, active) =
            (node(api::Role::Standby, "http://a", 0), node(api::Role::Active, "http://c", 48));
        let other = node(api::Role::Standby, "http://b", 372);
        let before = node(api::Role::Standby, "http://c", 9_986);
        let told = vec![here.clone(), active.clone(), other.clone(), before];
        assert_eq!(each_once(told), [here, active, other]);
    }
}
