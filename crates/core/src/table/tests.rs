//! What a node relies on beside the answers: how much one tick does, what it may count, what it notes by itself.

use leasehold_types::{Class, OwnerId, ResourceName, WallTime};

use super::*;
use crate::command::Acquire;
use crate::secret::ClusterSecret;

const TTL_MS: u64 = 10_000;

fn at(ms: u64) -> Now {
    Now { time: Time(ms), wall: WallTime(ms) }
}

fn table() -> LockTable {
    LockTable::restore(Journaled::new(), Settings::on(Durability::Durable), at(0))
}

/// Asks for a resource under the id of this number; its ticket is the number too.
fn acquire(table: &mut LockTable, resource: &str, number: u8, wait_ms: u64) -> Decision {
    let plain = Acquire::plain(ResourceName::new(resource).unwrap(), LeaseId::from_bytes([number; 16]));
    let command = Command::Acquire(Acquire {
        owner: Some(OwnerId::new("owner").unwrap()),
        ttl: Ttl::from_journal(TTL_MS),
        class: Class::Efficiency,
        wait_ms,
        ..plain
    });
    let (ticket, tenant) = (Ticket(number.into()), TenantName::default_tenant());
    table.decide(Request { ticket, tenant, identity: None, key: None, command }, at(0))
}

#[test]
fn a_tick_stops_after_as_many_facts_and_answers_as_it_may_make() {
    let mut table = table();
    for number in 0..5 {
        acquire(&mut table, &format!("r/{number}"), number, 0);
    }
    // Two who wait in vain: their deadlines come with those of the leases.
    for (resource, number) in [("r/0", 5), ("r/1", 6)] {
        assert!(acquire(&mut table, resource, number, TTL_MS).replies.is_empty());
    }
    assert_eq!((table.counts().leases, table.counts().waiters), (5, 2));
    let late = at(2 * TTL_MS);
    let made = |decision: &Decision| (decision.facts.len(), decision.replies.len());
    // First those that wait: the wait is shorter than the ttl as it is armed.
    assert_eq!(made(&table.tick(late, 1)), (0, 1));
    assert_eq!(made(&table.tick(late, 2)), (1, 1));
    assert_eq!(made(&table.tick(late, 3)), (3, 0));
    assert!(table.next_deadline().unwrap() <= late.time, "there is more to do");
    assert_eq!(made(&table.tick(late, 3)), (1, 0));
    assert_eq!((table.counts().leases, table.counts().waiters), (0, 0));
}

#[test]
fn answers_that_no_commit_confirms_ask_for_a_confirmation() {
    let mut table = table();
    let granted = acquire(&mut table, "r", 1, 0);
    assert!(!granted.facts.is_empty() && !granted.confirm, "its own commit confirms it");
    let refused = acquire(&mut table, "r", 2, 0);
    assert!(refused.facts.is_empty() && refused.confirm, "nothing is committed with it");
    let waits = acquire(&mut table, "r", 3, 1_000);
    assert!(waits.replies.is_empty() && !waits.confirm, "nobody is told anything");
}

#[test]
fn what_the_node_decides_itself_is_applied() {
    let mut table = table();
    table.mark(&Fact::SecretMade(ClusterSecret::from_bytes([7; 32])));
    assert!(table.journaled().secret().is_some());
}

#[test]
#[should_panic(expected = "every other fact comes of a command or of time")]
fn what_is_not_the_nodes_to_decide_is_not_applied() {
    table().mark(&Fact::Released { lease_id: LeaseId::from_bytes([1; 16]), at: WallTime(0), key: None });
}
