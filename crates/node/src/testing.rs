//! What the unit tests of this crate share.

use leasehold_core::{
    Acquire, Command, Event, EventKind, Journaled, LockTable, Query, Renew, RenewalReport, Reply, Settings,
    Sharing,
};
use leasehold_journal::{Limits, Tail};
use leasehold_types::{
    Class, ClusterId, Durability, Epoch, LeaseId, Mode, Nonce, Now, OwnerId, ResourceKey, ResourceName, Slot,
    TenantName, Time, Ttl, TtlBounds, WallTime,
};

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::ring::Ring;
use crate::shared::{Bounds, Identity, Shared};
use crate::state::State;
use crate::{Call, Clock, NoObserver};

pub(crate) const ROOMY: Limits = Limits { body_bytes: 1 << 20, chunk_bytes: 1 << 20, confirm_is_free: false };

pub(crate) fn event(resource: &str) -> Event {
    let resource = ResourceName::new(resource).unwrap();
    Event {
        kind: EventKind::Queued,
        resource: ResourceKey::new(&TenantName::default_tenant(), &resource),
        owner: OwnerId::new("someone").unwrap(),
        lease_id: lease_id(1),
        token: None,
        mode: Mode::Exclusive,
        permit: None,
        ttl_ms: 15_000,
        session: None,
    }
}

pub(crate) fn lease_id(n: u8) -> LeaseId {
    let mut bytes = [n; 16];
    (bytes[6], bytes[8]) = (0x40, 0x80);
    LeaseId::from_bytes(bytes)
}

pub(crate) fn call(command: Command) -> Call {
    Call { tenant: TenantName::default_tenant(), identity: None, key: None, command }
}

pub(crate) fn acquire(resource: &str, lease: u8, wait_ms: u64) -> Call {
    call(Command::Acquire(Acquire {
        resource: ResourceName::new(resource).unwrap(),
        owner: Some(OwnerId::new("someone").unwrap()),
        ttl: Some(Ttl::new(15_000, TtlBounds::default()).unwrap()),
        wait_ms,
        sharing: Sharing::Exclusive,
        class: Class::Efficiency,
        session: None,
        renews_session: false,
        lease_id: lease_id(lease),
        lease_id_chosen: false,
        lock_delay_ms: 0,
        max_hold_ms: None,
        labels: Default::default(),
        value: None,
    }))
}

pub(crate) fn release(lease: u8) -> Call {
    call(Command::Release { lease_id: lease_id(lease) })
}

pub(crate) fn renew(lease: u8) -> Call {
    let (lease_id, report) = (lease_id(lease), RenewalReport::default());
    call(Command::Renew(Renew { lease_id, ttl: None, report, lists_locks: true }))
}

pub(crate) fn show(lease: u8) -> Call {
    call(Command::Query(Query::Lease(lease_id(lease))))
}

pub(crate) fn state(limits: Limits) -> State {
    let settings = Settings::on(Durability::Durable);
    let table = LockTable::restore(Journaled::new(), settings, at(0));
    State::new(table, Epoch(3), Nonce::from_bytes([7; 16]), Tail::default(), limits)
}

pub(crate) fn at(ms: u64) -> Now {
    Now { time: Time(ms), wall: WallTime(1_700_000_000_000 + ms) }
}

/// A reply in one word.
pub(crate) fn word(reply: &Reply) -> &'static str {
    match reply {
        Reply::Granted(_) => "granted",
        Reply::NotGranted(_) => "not granted",
        Reply::Renewed(_) => "renewed",
        Reply::Released { .. } => "released",
        Reply::Lease(_) => "lease",
        Reply::Refused(_) => "refused",
        _ => "other",
    }
}

/// A life that serves, with a loop that takes nothing.
pub(crate) fn life(clock: Arc<dyn Clock>) -> Arc<Shared> {
    let (cluster, node) = (ClusterId::from_bytes([1; 16]), Arc::from("node"));
    let (journal, durability) = ("memory", Durability::Volatile);
    let identity = Identity { cluster, node, journal, durability, known_format: 1 };
    let bounds = Bounds { queue: 1, reserve: 0, waiters: 1 };
    let (ring, (queue, _)) = (Arc::new(Ring::new(1, 1, Slot(0))), mpsc::unbounded_channel());
    Arc::new(Shared::new(identity, Epoch(1), bounds, clock, Arc::new(NoObserver), ring, queue))
}
