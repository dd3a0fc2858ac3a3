//! Malformed bytes (F14): whatever is read from disks, wires and files is refused, never a reason to stop. The embedded
//! journal's own damage is in `crates/journal-wal/tests/damage.rs` and in every eighth seed of the simulator.
//!
//! Seeded mutations of valid bytes, on the stable toolchain; half a second for each target, and as long as
//! `LEASEHOLD_FUZZ_SECONDS` says by hand (`cargo xtask drill malformed SECONDS`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use leasehold_core::codec::{self, SnapshotDecoder};
use leasehold_core::{Acquire, Command, Fact, Journaled, LockTable, Request, Settings, Sharing, Ticket};
use leasehold_history::{Checker, check_lines};
use leasehold_sim::{Chance, Options, run};
use leasehold_types::{
    Class, Durability, Labels, LeaseId, Now, OwnerId, RequestKey, ResourceName, TenantName, Ttl,
};

/// Mutates `valid` again and again and gives each mutant to `read`.
#[expect(
    clippy::disallowed_methods,
    reason = "bounds how long a developer waits; nothing else depends on it"
)]
fn feed(valid: &[u8], mut read: impl FnMut(&[u8])) {
    let seconds =
        std::env::var("LEASEHOLD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0.5);
    let (began, mut chance) = (Instant::now(), Chance::new(valid.len() as u64));
    let mut runs = 0;
    while runs < 50 || began.elapsed() < Duration::from_secs_f64(seconds) {
        read(&mutant(valid, &mut chance));
        runs += 1;
    }
}

fn mutant(valid: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.index(bytes.len().max(1));
        match chance.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << chance.below(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][chance.index(5)],
            2 => bytes.truncate(at),
            3 => bytes.insert(at.min(bytes.len()), chance.bits().to_le_bytes()[0]),
            4 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => {
                let part = bytes[at.min(bytes.len())..].to_vec();
                bytes.extend(part.into_iter().take(40));
            }
        }
    }
    bytes
}

/// A body and the state that it makes.
fn recorded() -> (Vec<u8>, Journaled) {
    let now = Now::default();
    let mut table = LockTable::restore(Journaled::new(), Settings::on(Durability::Durable), now);
    let mut chance = Chance::new(1);
    let mut facts: Vec<Fact> = Vec::new();
    for n in 0..40 {
        let command = Command::Acquire(Acquire {
            resource: ResourceName::new(&format!("r/{}", n % 30)).unwrap(),
            owner: Some(OwnerId::new("someone").unwrap()),
            ttl: Ttl::from_journal(1_000 + n),
            wait_ms: 0,
            sharing: if n % 3 == 0 { Sharing::Semaphore { limit: 3 } } else { Sharing::Exclusive },
            class: Class::Correctness,
            session: None,
            lease_id: LeaseId::from_bytes(chance.id()),
            lease_id_chosen: true,
            lock_delay_ms: n,
            max_hold_ms: Some(90_000 + n),
            labels: Labels::default(),
            value: Some("value".into()),
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

#[test]
fn histories() {
    let records = run(&Options { keep: true, most_faults: Some(2), ..Options::of(1) }).records;
    let lines: Vec<String> = records.iter().take(40).map(to_json).collect();
    feed(lines.join("\n").as_bytes(), |bytes| drop(check_lines(bytes, Checker::default())));
}

fn to_json(record: &leasehold_history::Record) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one.jsonl");
    leasehold_history::Writer::create(&file).unwrap().write(record).unwrap();
    std::fs::read_to_string(file).unwrap().trim_end().to_owned()
}
