//! Malformed bytes (F14) of the journal: facts, snapshots, names. Whatever is read is refused, never a reason to
//! stop. What comes from the network and from files is in `tests/e2e/malformed.rs`; the embedded journal's own damage is in
//! `crates/journal-wal/tests/damage.rs` and in every eighth seed of the simulator.
//!
//! Half a second for each target, and as long as one likes by hand (`cargo xtask drill malformed SECONDS`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_core::codec::{self, SnapshotDecoder};
use leasehold_core::{Acquire, Command, Fact, Journaled, LockTable, Request, Settings, Sharing, Ticket};
use leasehold_sim::Chance;
use leasehold_testbed::mutants;
use leasehold_types::{Durability, LeaseId, Now, OwnerId, RequestKey, ResourceName, TenantName, Ttl};

fn feed(valid: &[u8], mut read: impl FnMut(&[u8])) {
    mutants(&[valid.to_vec()], |_, bytes| read(bytes));
}

/// A body and the state that it makes.
fn recorded() -> (Vec<u8>, Journaled) {
    let now = Now::default();
    let mut table = LockTable::restore(Journaled::new(), Settings::on(Durability::Durable), now);
    let mut chance = Chance::new(1);
    let mut facts: Vec<Fact> = Vec::new();
    for n in 0..40 {
        let command = Command::Acquire(Acquire {
            owner: Some(OwnerId::new("someone").unwrap()),
            ttl: Ttl::from_journal(1_000 + n),
            sharing: if n % 3 == 0 { Sharing::Semaphore { limit: 3 } } else { Sharing::Exclusive },
            lock_delay_ms: n,
            max_hold_ms: Some(90_000 + n),
            value: Some("value".into()),
            ..Acquire::plain(
                ResourceName::new(&format!("r/{}", n % 30)).unwrap(),
                LeaseId::from_bytes(chance.id()),
            )
        });
        let (tenant, key) = (TenantName::default_tenant(), RequestKey::new(&format!("key{n}")).ok());
        facts.extend(
            table.decide(Request { ticket: Ticket(n), tenant, identity: None, key, command }, now).facts,
        );
    }
    let mut body = vec![1];
    facts.iter().for_each(|fact| codec::encode_fact(fact, &mut body));
    assert!(codec::decode_body(&body).is_ok());
    (body, table.journaled().clone())
}

#[test]
fn facts() {
    feed(&recorded().0, |bytes| drop(codec::decode_body(bytes)));
}

#[test]
fn snapshots() {
    let mut whole = Vec::new();
    codec::encode_snapshot(&recorded().1, usize::MAX, &mut |chunk| {
        whole.extend_from_slice(&chunk);
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap();
    feed(&whole, |bytes| {
        let mut decoder = SnapshotDecoder::default();
        if decoder.chunk(bytes).is_ok() {
            drop(decoder.finish());
        }
    });
}

#[test]
fn names() {
    feed("orders/42:Zürich".as_bytes(), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        drop((ResourceName::new(&text), OwnerId::new(&text), TenantName::new(&text), RequestKey::new(&text)));
        assert!(
            ResourceName::new(&text).is_ok_and(|name| name.as_str() == text)
                || ResourceName::new(&text).is_err()
        );
    });
}
