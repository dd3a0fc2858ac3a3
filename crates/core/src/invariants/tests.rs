//! A check that cannot fail proves nothing: for each promise a table that breaks it, and nothing else.

use leasehold_types::{
    Class, Durability, EndReason, FencingToken, Generation, Labels, LeaseId, Now, OwnerId, Permit,
    ResourceKey, ResourceName, SessionId, TenantName, Ttl, TtlBounds, WallTime, limits,
};

use super::*;
use crate::clocks::Timers;
use crate::command::{Acquire, Command, ForceRelease, ForceTarget, OpenSession, Operator, Request, Ticket};
use crate::fact::Granted;
use crate::lease::LeaseIx;
use crate::lease_ids::{LeaseIds, Records};
use crate::reply::Ending;
use crate::resource::{Closes, Delay};
use crate::table::Settings;

type Judge = fn(&LockTable) -> Check;

/// Every promise about a state, by the name of its function.
const ALL: [(&str, Judge); 9] = [
    ("holds_are_disjoint", |table| holds_are_disjoint(&table.journaled)),
    ("tokens_are_unique", |table| tokens_are_unique(&table.journaled)),
    ("leases_live_in_their_session", |table| leases_live_in_their_session(&table.journaled)),
    ("indices_agree", |table| indices_agree(&table.journaled)),
    ("audit_is_chained", |table| audit_is_chained(&table.journaled)),
    ("memory_is_bounded", |table| memory_is_bounded(&table.journaled)),
    ("usage_is_counted", |table| usage_is_counted(&table.journaled)),
    ("no_free_lock_with_a_waiter", no_free_lock_with_a_waiter),
    ("every_life_has_one_timer", every_life_has_one_timer),
];

const SESSION: SessionId = SessionId::from_bytes([1; 16]);
/// In the session, on `held`.
const LEASE: LeaseId = LeaseId::from_bytes([2; 16]);
/// By itself, on `own`; has the largest token.
const OWN: LeaseId = LeaseId::from_bytes([3; 16]);
/// Waits for `held`.
const WAITS: LeaseId = LeaseId::from_bytes([4; 16]);
/// Not in the table.
const OTHER: LeaseId = LeaseId::from_bytes([5; 16]);

fn key(name: &str) -> ResourceKey {
    ResourceKey::new(&TenantName::default_tenant(), &ResourceName::new(name).unwrap())
}

fn owner() -> OwnerId {
    OwnerId::new("owner").unwrap()
}

fn ttl() -> Ttl {
    Ttl::new(10_000, TtlBounds::default()).unwrap()
}

fn acquire(resource: &str, lease_id: LeaseId, session: Option<SessionId>, wait_ms: u64) -> Command {
    let (owner, ttl) = (Some(owner()), session.is_none().then(ttl));
    let plain = Acquire::plain(ResourceName::new(resource).unwrap(), lease_id);
    Command::Acquire(Acquire { owner, ttl, session, wait_ms, ..plain })
}

/// A table with something of everything, all of it lawful.
fn table() -> LockTable {
    let settings = Settings::on(Durability::Durable);
    let mut table = LockTable::restore(Journaled::new(), settings, Now::default());
    let force = ForceRelease {
        resource: ResourceName::new("forced").unwrap(),
        target: ForceTarget::All,
        skip_lock_delay: true,
        operator: Operator { actor: "anna".into(), reason: "stuck".into() },
    };
    let open = OpenSession { session_id: SESSION, owner: owner(), ttl: ttl(), labels: Labels::default() };
    let commands = [
        Command::OpenSession(open),
        acquire("forced", OTHER, None, 0),
        Command::ForceRelease(force),
        acquire("held", LEASE, Some(SESSION), 0),
        acquire("own", OWN, None, 0),
        acquire("held", WAITS, None, 60_000),
    ];
    for (number, command) in (0..).zip(commands) {
        let tenant = TenantName::default_tenant();
        let request = Request { ticket: Ticket(number), tenant, identity: None, key: None, command };
        table.decide(request, Now::default());
    }
    assert_eq!((table.journaled.leases.len(), table.queues.len(), table.journaled.audit.count), (2, 1, 1));
    check(&table).unwrap();
    table
}

/// One more lease of the session, as the journal could only have it by a mistake.
fn granted(resource: &str, number: u8, token: u64, sharing: Sharing, permit: Option<u32>) -> Fact {
    Fact::Granted(Box::new(Granted {
        lease_id: LeaseId::from_bytes([number; 16]),
        resource: key(resource),
        owner: owner(),
        session: Some(SESSION),
        sharing,
        permit: permit.map(Permit),
        class: Class::Correctness,
        ttl: ttl(),
        max_hold_ms: None,
        lock_delay_ms: 0,
        labels: Labels::default(),
        value: None,
        token: FencingToken::new(token).unwrap(),
        at: WallTime(0),
        key: None,
        principal: None,
    }))
}

/// This mistake is noticed by this function alone.
#[track_caller]
fn breaks(only: &str, spoil: impl FnOnce(&mut LockTable)) {
    let mut table = table();
    spoil(&mut table);
    let found = ALL.iter().filter(|(_, holds)| holds(&table).is_err()).map(|(name, _)| *name);
    assert_eq!(found.collect::<Vec<_>>(), [only]);
    assert!(check(&table).is_err(), "whoever checks everything sees it");
}

fn apply(table: &mut LockTable, fact: &Fact) {
    table.journaled.apply(fact, &mut Vec::new());
}

#[test]
fn two_holders_of_one_resource_are_noticed() {
    let semaphore = Sharing::Semaphore { limit: 3 };
    breaks("holds_are_disjoint", |table| {
        apply(table, &granted("held", 9, 100, Sharing::Exclusive, None));
    });
    breaks("holds_are_disjoint", |table| apply(table, &granted("held", 9, 100, Sharing::Shared, None)));
    breaks("holds_are_disjoint", |table| {
        apply(table, &granted("three", 9, 100, semaphore, Some(1)));
        apply(table, &granted("three", 10, 101, semaphore, Some(1)));
    });
    let mut lawful = table();
    apply(&mut lawful, &granted("three", 9, 100, semaphore, Some(1)));
    apply(&mut lawful, &granted("three", 10, 101, semaphore, Some(0)));
    apply(&mut lawful, &granted("read", 11, 102, Sharing::Shared, None));
    apply(&mut lawful, &granted("read", 12, 103, Sharing::Shared, None));
    assert_eq!(check(&lawful), Ok(()));
}

#[test]
fn a_token_twice_or_above_the_counter_is_noticed() {
    breaks("tokens_are_unique", |table| table.journaled.last_token -= 1);
    breaks("tokens_are_unique", |table| {
        let newest = table.journaled.last_token;
        table.journaled.last_token -= 1;
        apply(table, &granted("twice", 9, newest, Sharing::Exclusive, None));
    });
}

#[test]
fn a_token_that_does_not_grow_is_noticed_in_a_run() {
    let tokens = |tokens: &[u64]| {
        let numbered = (9..).zip(tokens);
        numbered.map(|(n, token)| granted("r", n, *token, Sharing::Exclusive, None)).collect::<Vec<_>>()
    };
    assert_eq!(tokens_grow(&tokens(&[5, 7]), 4), Ok(7));
    assert!(tokens_grow(&tokens(&[5, 7]), 5).is_err());
    assert!(tokens_grow(&tokens(&[5, 5]), 4).is_err());
    let recovered = Fact::Recovered {
        generation: Generation(2),
        token_floor: 100,
        operator: Operator { actor: "anna".into(), reason: "restored".into() },
        identity: None,
        at: WallTime(0),
    };
    assert_eq!(tokens_grow(std::slice::from_ref(&recovered), 4), Ok(100));
    assert!(tokens_grow(&[vec![recovered], tokens(&[100])].concat(), 4).is_err());
}

#[test]
fn a_state_that_differs_is_noticed() {
    let (one, mut other) = (table(), table());
    assert_eq!(states_are_equal(&one.journaled, &other.journaled), Ok(()));
    apply(&mut other, &granted("more", 9, 100, Sharing::Exclusive, None));
    assert!(states_are_equal(&one.journaled, &other.journaled).is_err());
}

#[test]
fn a_lease_outside_its_session_is_noticed() {
    let session = |table: &LockTable| table.journaled.session_ids[&SESSION];
    breaks("leases_live_in_their_session", |table| {
        let ix = session(table);
        table.journaled.sessions.get_mut(ix).leases = Default::default();
    });
    breaks("leases_live_in_their_session", |table| {
        let (ix, stranger) = (session(table), table.journaled.find_lease(OWN).unwrap());
        table.journaled.sessions.get_mut(ix).leases.insert(stranger);
    });
}

/// Two leases of the session that share a resource, and their places.
fn shared(table: &mut LockTable) -> [LeaseIx; 2] {
    [9, 10].map(|number: u8| {
        apply(table, &granted("read", number, 100 + u64::from(number), Sharing::Shared, None));
        table.journaled.find_lease(LeaseId::from_bytes([number; 16])).unwrap()
    })
}

#[test]
fn an_index_that_disagrees_is_noticed() {
    breaks("indices_agree", |table| table.journaled.lease_ids = LeaseIds::default());
    // One id too many; a holder twice; a holder in the place of another.
    breaks("indices_agree", |table| {
        let known = table.journaled.known(OWN).unwrap();
        let beside = LeaseId::from_bytes(std::array::from_fn(|at| if at < 15 { 3 } else { 4 }));
        let Journaled { lease_ids, leases, outcomes, .. } = &mut table.journaled;
        lease_ids.set(beside, known, Records { leases, ended: outcomes.leases() });
    });
    breaks("indices_agree", |table| {
        let [one, _] = shared(table);
        let Journaled { resources, leases, .. } = &mut table.journaled;
        resources.add_holder(one, leases);
    });
    breaks("indices_agree", |table| {
        let [one, other] = shared(table);
        let Journaled { resources, leases, .. } = &mut table.journaled;
        resources.end_holder(other, leases, ending(), 1_000);
        resources.add_holder(one, leases);
    });
    // Kept for nothing; used and in no order; in the order twice at one time.
    for used in [&[0][..], &[1_000], &[1_000, 1_000]] {
        breaks("indices_agree", |table| {
            let Journaled { resources, leases, .. } = &mut table.journaled;
            let restored = (0..).zip(used).map(|(n, used)| {
                let endings = if *used > 0 { vec![ending()] } else { Vec::new() };
                resources.restore(&key(&format!("old/{n}")), *used, endings, Vec::new(), leases)
            });
            let order: Vec<_> = restored.collect();
            if used.len() > 1 {
                resources.restore_order(order.into_iter());
            }
        });
    }
}

fn ending() -> Ending {
    let token = FencingToken::new(1).unwrap();
    Ending { owner: owner(), token, reason: EndReason::Released, max_hold: false, at: WallTime(0) }
}

#[test]
fn a_wrong_count_for_a_tenant_is_noticed() {
    breaks("usage_is_counted", |table| table.journaled.usages = Usages::default());
    breaks("usage_is_counted", |table| {
        let Journaled { usages, sessions, .. } = &mut table.journaled;
        sessions.iter().for_each(|(_, session)| usages.session_begins(session));
    });
}

#[test]
fn a_changed_audit_entry_is_noticed() {
    breaks("audit_is_chained", |table| table.journaled.audit.entries[0].reason = "none".into());
}

#[test]
fn more_than_is_to_be_kept_is_noticed() {
    breaks("memory_is_bounded", |table| {
        let Journaled { resources, leases, .. } = &mut table.journaled;
        let used = 1_000..=1_000 + limits::RESOURCES_WITH_ENDINGS as u64;
        let restored = used.map(|used| {
            resources.restore(&key(&format!("old/{used}")), used, vec![ending()], Vec::new(), leases)
        });
        let order: Vec<_> = restored.collect();
        resources.restore_order(order.into_iter());
    });
}

#[test]
fn the_resource_that_was_not_used_for_longest_is_forgotten_when_there_are_too_many() {
    let mut table = table();
    let Journaled { resources, leases, used, .. } = &mut table.journaled;
    let room = limits::RESOURCES_WITH_ENDINGS - resources.recent_len();
    // Two short of the bound, used after all others.
    let more = (1_000..).take(room - 2);
    let restored = more.map(|used| {
        resources.restore(&key(&format!("old/{used}")), used, vec![ending()], Vec::new(), leases)
    });
    let order: Vec<_> = restored.collect();
    resources.restore_order(order.into_iter());
    *used = 1_000_000;
    let kept = |table: &LockTable| {
        (table.journaled.resources.recent_len(), table.journaled.resource(&key("forced")).is_some())
    };
    let most = limits::RESOURCES_WITH_ENDINGS;
    for (number, resource, expected) in [
        (20, "a", (most - 1, true)),
        (21, "b", (most, true)),
        (22, "c", (most, false)),
        (23, "d", (most, false)),
    ] {
        apply(&mut table, &granted(resource, number, 100 + u64::from(number), Sharing::Exclusive, None));
        let lease_id = LeaseId::from_bytes([number; 16]);
        apply(&mut table, &Fact::Released { lease_id, at: WallTime(0), key: None });
        assert_eq!(kept(&table), expected, "{resource}");
    }
    assert!(table.journaled.resource(&key("old/1000")).is_none());
    assert_eq!(check(&table), Ok(()));
}

#[test]
fn a_resource_that_is_forgotten_leaves_nothing_behind() {
    let forget = |table: &mut LockTable| table.journaled.resources.forget_oldest();
    let forced = key("forced");
    let mut free = table();
    forget(&mut free);
    assert!(free.journaled.resource(&forced).is_none());
    assert_eq!(check(&free), Ok(()));
    // Its holders stay, one or more of them.
    for holders in [1, 2] {
        let mut held = table();
        for number in 9..9 + holders {
            apply(&mut held, &granted("forced", number, 100 + u64::from(number), Sharing::Shared, None));
        }
        forget(&mut held);
        let known = held.journaled.resource(&forced).unwrap();
        assert_eq!((known.holders().count(), known.endings().len()), (usize::from(holders), 0));
        assert_eq!(check(&held), Ok(()));
    }
    // So does a lock delay, until it ends.
    let mut closed = table();
    let token = FencingToken::new(1).unwrap();
    let delay = Delay { token, closes: Closes::after(Sharing::Exclusive, None), ms: 1_000 };
    let Journaled { resources, leases, .. } = &mut closed.journaled;
    resources.add_delay(&forced, delay, leases);
    forget(&mut closed);
    assert_eq!(closed.journaled.resource(&forced).unwrap().delays().len(), 1);
    apply(&mut closed, &Fact::DelayEnded { resource: forced.clone(), token });
    assert!(closed.journaled.resource(&forced).is_none());
    assert_eq!(check(&closed), Ok(()));
}

#[test]
fn a_waiter_before_a_free_lock_is_noticed() {
    let freed = |table: &mut LockTable| {
        apply(table, &Fact::Released { lease_id: LEASE, at: WallTime(0), key: None });
    };
    breaks("no_free_lock_with_a_waiter", freed);
    let mut without_room = table();
    freed(&mut without_room);
    without_room.held_back.insert(key("held"));
    assert_eq!(check(&without_room), Ok(()));
}

#[test]
fn a_life_that_the_clock_has_forgotten_is_noticed() {
    breaks("every_life_has_one_timer", |table| table.timers = Timers::default());
    for life in ["lease", "session"] {
        breaks("every_life_has_one_timer", |table| {
            let life = match life {
                "lease" => LifeIx::Lease(table.journaled.find_lease(OWN).unwrap()),
                _ => LifeIx::Session(table.journaled.session_ids[&SESSION]),
            };
            table.life_clock_mut(life).deadline.0 -= 1;
        });
    }
}
