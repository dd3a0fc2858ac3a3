//! Nodes that know different formats of facts on one journal (N10).

use leasehold_core::{AuditAction, Command, Operator, Query, Reply};
use leasehold_journal::OpenError;
use leasehold_node::{StartError, StopReason};

use super::cluster::*;
use super::world::call;

fn operator() -> Operator {
    Operator { actor: "ada".into(), reason: "every node is upgraded".into() }
}

/// A node that stands for an older version.
async fn older(cluster: &Cluster, number: usize) -> Result<Member, StartError> {
    let mut config = cluster.config(number);
    config.known_format = 1;
    cluster.start(config).await
}

#[tokio::test]
async fn a_new_journal_has_the_newest_format_and_a_secret_that_every_node_knows() {
    let cluster = Cluster::new(2).await;
    cluster.pass(300).await;
    let [active, standby] = &cluster.members[..] else { panic!("two were started") };
    for member in [active, standby] {
        let status = member.handle.status();
        assert_eq!((status.format, status.known_format), (2, 2));
    }
    assert!(active.handle.secret().is_some());
    assert_eq!(active.handle.secret(), standby.handle.secret());
    let raised = active.handle.raise_format(operator(), None).await.unwrap();
    assert_eq!((raised.before, raised.format), (2, 2), "there is nothing to raise");
}

#[tokio::test]
async fn an_older_journal_stays_in_its_format_until_it_is_raised_and_then_stops_older_nodes() {
    let mut cluster = Cluster::new(0).await;
    let founder = older(&cluster, 1).await.unwrap();
    founder.grant("kept", 1).await;
    cluster.members.push(founder);
    let newer = cluster.start(cluster.config(2)).await.unwrap();
    cluster.members.push(newer);
    cluster.pass(300).await;
    assert_eq!(cluster.members[1].handle.status().format, 1);

    // The newer node takes over and writes what the older one reads, which stands by meanwhile.
    assert_eq!(cluster.members.remove(0).shut_down().await, StopReason::Shutdown);
    cluster.pass_until(1_000, |cluster| cluster.active().is_some()).await;
    let again = older(&cluster, 1).await.unwrap();
    cluster.members.push(again);
    let newer = &cluster.members[0];
    assert_eq!(newer.grant("more", 2).await, 2);
    cluster.pass(300).await;
    assert_eq!(cluster.members[1].handle.status().counts.leases, 2, "it follows");
    assert_eq!((newer.handle.status().format, newer.handle.secret()), (1, None));

    let raised = newer.handle.raise_format(operator(), Some("ops".into())).await.unwrap();
    assert_eq!((raised.before, raised.format), (1, 2));
    assert!(raised.secret.is_some() && newer.handle.secret() == raised.secret);
    let mut older_one = cluster.members.remove(1);
    cluster.time.advance(std::time::Duration::from_millis(200));
    match older_one.stopped().await {
        StopReason::Halted(why) => {
            assert!(why.contains("newer version") && why.contains("format 2"), "{why}")
        }
        other => panic!("{other:?}"),
    }
    match older(&cluster, 1).await.err() {
        Some(StartError::Open(OpenError::TooNew(why))) => assert!(why.contains("format 2"), "{why}"),
        other => panic!("{other:?}"),
    }

    let audit = cluster.members[0].ask(call(Command::Query(Query::Audit {
        resource: None,
        after: 0,
        page_size: 10,
    })));
    let Reply::Audit { entries, .. } = audit.await else { panic!("the audit log") };
    let actions: Vec<_> = entries.iter().map(|entry| (entry.action, entry.identity.as_deref())).collect();
    assert_eq!(actions, [(AuditAction::UpgradeFinish, Some("ops"))]);

    // A node that is started now reads both formats, one after the other.
    let third = cluster.start(cluster.config(3)).await.unwrap();
    cluster.members.push(third);
    cluster.pass(300).await;
    let third = &cluster.members[1].handle;
    assert_eq!((third.status().format, third.secret()), (2, raised.secret));
    assert_eq!(third.status().counts.leases, 2);
}
