//! Nodes that know different formats of facts on one journal (N10).

use leasehold_core::{AuditAction, Command, Operator, Query, Refusal, Reply, codec};
use leasehold_journal::OpenError;
use leasehold_node::{StartError, StopReason};

use super::cluster::*;
use super::world::call;

fn operator() -> Operator {
    Operator { actor: "ada".into(), reason: "every node is upgraded".into() }
}

/// A node that stands for an older version.
async fn older(cluster: &Cluster, number: usize, known_format: u8) -> Result<Member, StartError> {
    let mut config = cluster.config(number);
    config.known_format = known_format;
    cluster.start(config).await
}

#[tokio::test]
async fn a_new_journal_has_the_newest_format_and_a_secret_that_every_node_knows() {
    let cluster = Cluster::new(2).await;
    cluster.pass(300).await;
    let [active, standby] = &cluster.members[..] else { panic!("two were started") };
    for member in [active, standby] {
        let status = member.handle.status();
        assert_eq!((status.format, status.known_format), (codec::FORMAT, codec::FORMAT));
    }
    assert!(active.handle.secret().is_some());
    assert_eq!(active.handle.secret(), standby.handle.secret());
    let raised = active.handle.raise_format(operator(), None).await.unwrap();
    assert_eq!((raised.before, raised.format), (codec::FORMAT, codec::FORMAT), "there is nothing to raise");
}

#[tokio::test]
async fn a_journal_of_the_first_format_stays_in_it_until_it_is_raised_and_then_stops_older_nodes() {
    stays_in_its_format_until_it_is_raised(1).await;
}

#[tokio::test]
async fn a_journal_of_the_second_format_stays_in_it_until_it_is_raised_and_then_stops_older_nodes() {
    stays_in_its_format_until_it_is_raised(2).await;
}

async fn stays_in_its_format_until_it_is_raised(before: u8) {
    let newest = format!("format {}", codec::FORMAT);
    let mut cluster = Cluster::new(0).await;
    let founder = older(&cluster, 1, before).await.unwrap();
    founder.grant("kept", 1).await;
    cluster.members.push(founder);
    let newer = cluster.start(cluster.config(2)).await.unwrap();
    cluster.members.push(newer);
    cluster.pass(300).await;
    assert_eq!(cluster.members[1].handle.status().format, before);

    // The newer node takes over and writes what the older one reads, which stands by meanwhile.
    assert_eq!(cluster.members.remove(0).shut_down().await, StopReason::Shutdown);
    cluster.pass_until(1_000, |cluster| cluster.active().is_some()).await;
    let again = older(&cluster, 1, before).await.unwrap();
    cluster.members.push(again);
    let newer = &cluster.members[0];
    assert_eq!(newer.grant("more", 2).await, 2);
    cluster.pass(300).await;
    assert_eq!(cluster.members[1].handle.status().counts.leases, 2, "it follows");
    assert_eq!((newer.handle.status().format, newer.handle.secret().is_some()), (before, before >= 2));
    let backup = || call(Command::NoteBackup(operator()));
    assert_eq!(newer.ask(backup()).await, Reply::Refused(Refusal::FormatTooOld));

    let raised = newer.handle.raise_format(operator(), Some("ops".into())).await.unwrap();
    assert_eq!((raised.before, raised.format), (before, codec::FORMAT));
    assert!(raised.secret.is_some() && newer.handle.secret() == raised.secret);
    let mut older_one = cluster.members.remove(1);
    cluster.time.advance(std::time::Duration::from_millis(200));
    match older_one.stopped().await {
        StopReason::Halted(why) => {
            assert!(why.contains("newer version") && why.contains(&newest), "{why}")
        }
        other => panic!("{other:?}"),
    }
    match older(&cluster, 1, before).await.err() {
        Some(StartError::Open(OpenError::TooNew(why))) => assert!(why.contains(&newest), "{why}"),
        other => panic!("{other:?}"),
    }

    assert_eq!(cluster.members[0].ask(backup()).await, Reply::BackupNoted { audit_seq: 2 });
    let audit = cluster.members[0].ask(call(Command::Query(Query::Audit {
        resource: None,
        after: 0,
        page_size: 10,
    })));
    let Reply::Audit { entries, .. } = audit.await else { panic!("the audit log") };
    let actions: Vec<_> = entries.iter().map(|entry| (entry.action, entry.identity.as_deref())).collect();
    assert_eq!(actions, [(AuditAction::UpgradeFinish, Some("ops")), (AuditAction::Backup, None)]);

    // A node that is started now reads both formats, one after the other.
    let third = cluster.start(cluster.config(3)).await.unwrap();
    cluster.members.push(third);
    cluster.pass(300).await;
    let third = &cluster.members[1].handle;
    assert_eq!((third.status().format, third.secret()), (codec::FORMAT, raised.secret));
    assert_eq!(third.status().counts.leases, 2);
}
