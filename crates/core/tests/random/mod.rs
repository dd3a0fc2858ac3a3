//! Random steps in a world so small that things collide.

use leasehold_core::{
    Acquire, Command, ForceRelease, ForceTarget, OpenSession, Operator, Recover, Renew, RenewSession,
    RenewalReport, Request, Sharing, Ticket,
};
use leasehold_types::{
    FencingToken, Labels, LeaseId, OwnerId, RequestKey, ResourceName, SessionId, TenantName, Ttl,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::ids;

pub(crate) const TENANTS: [&str; 2] = ["acme", "zeta"];
pub(crate) const RESOURCES: [&str; 2] = ["a/1", "b"];

/// One step of a run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ask(Asked),
    Pass(Pass),
    /// Crash, and take over from a snapshot in chunks of this size.
    Restart(usize),
    /// From here on S15 is followed from a snapshot.
    Snapshot,
    Room(bool),
}

/// How time passes.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    Ticking(u64),
    /// The node stood still, and ticks at the end.
    Late(u64),
    /// Nothing ticks: the next command finds what is overdue.
    Unnoticed(u64),
}

/// A command; ids are chosen when it is asked, from those that were used lately.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    tenant: &'static str,
    key: Option<u8>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Acquire { id: Id, acquire: Box<Acquire>, session: Option<usize>, repeats: bool },
    Renew(usize, Option<u64>),
    Release(usize),
    Resign(usize, Option<u8>),
    Proclaim(usize, u8),
    Withdraw(usize),
    Open(u8, u64),
    Keep(usize, Option<u64>, Vec<usize>),
    Close(usize, bool),
    Force { resource: &'static str, token: Option<usize>, skip: bool },
    Recover(u64),
}

/// A lease id: drawn by the server, one of a few, or one that was used before.
#[derive(Clone, Debug)]
enum Id {
    Drawn,
    Chosen(u8),
    Again(usize),
}

fn ttl_ms() -> impl Strategy<Value = u64> {
    select(vec![1_000, 5_000, 15_000, 15_000, 61_000, 61_000, 100_000])
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![
        2 => Just(Sharing::Exclusive),
        3 => Just(Sharing::Shared),
        4 => (2_u32..6).prop_map(|limit| Sharing::Semaphore { limit }),
    ]
}

fn owner(number: u8) -> OwnerId {
    OwnerId::new(&format!("w{number}")).unwrap()
}

fn ttl(ms: u64) -> Ttl {
    Ttl::from_journal(ms).unwrap()
}

fn acquire() -> impl Strategy<Value = What> {
    let id = prop_oneof![6 => Just(Id::Drawn), 3 => (0_u8..24).prop_map(Id::Chosen), 1 => (0_usize..6).prop_map(Id::Again)];
    let session = prop_oneof![3 => Just(None), 1 => (0_usize..4).prop_map(Some)];
    let wait_ms = select(vec![0, 3_000, 30_000, 30_000, 700_000]);
    let delay_ms = select(vec![0, 0, 0, 4_000, 20_000]);
    let hold_ms = select(vec![None, None, None, Some(10_000), Some(90_000)]);
    let fields = (select(RESOURCES.to_vec()), 0_u8..3, ttl_ms(), wait_ms, sharing(), delay_ms, hold_ms);
    (id, session, fields, prop::bool::weighted(0.6)).prop_map(|(id, session, fields, repeats)| {
        let (resource, who, ttl_ms, wait_ms, sharing, lock_delay_ms, max_hold_ms) = fields;
        let acquire = Acquire {
            owner: session.is_none().then(|| owner(who)),
            ttl: session.is_none().then(|| ttl(ttl_ms)),
            wait_ms,
            sharing,
            // Who is of no use in a session, and so decides.
            renews_session: who > 0,
            lease_id_chosen: !matches!(id, Id::Drawn),
            lock_delay_ms,
            max_hold_ms,
            ..Acquire::plain(ResourceName::new(resource).unwrap(), ids::lease("later"))
        };
        What::Acquire { id, acquire: Box::new(acquire), session, repeats }
    })
}

fn what() -> impl Strategy<Value = What> {
    let other_ttl = prop_oneof![3 => Just(None), 1 => ttl_ms().prop_map(Some)];
    let other_ttl_too = prop_oneof![3 => Just(None), 1 => ttl_ms().prop_map(Some)];
    prop_oneof![
        14 => acquire(),
        5 => (0_usize..8, other_ttl).prop_map(|(lease, ttl)| What::Renew(lease, ttl)),
        5 => (0_usize..8).prop_map(What::Release),
        1 => (0_usize..4, prop::option::of(0_u8..3)).prop_map(|(lease, to)| What::Resign(lease, to)),
        1 => (0_usize..4, 0_u8..3).prop_map(|(lease, value)| What::Proclaim(lease, value)),
        3 => (0_usize..4).prop_map(What::Withdraw),
        3 => (0_u8..3, ttl_ms()).prop_map(|(owner, ttl)| What::Open(owner, ttl)),
        3 => (0_usize..4, other_ttl_too, prop::collection::vec(0_usize..8, 0..3))
            .prop_map(|(session, ttl, seen)| What::Keep(session, ttl, seen)),
        1 => (0_usize..4, any::<bool>()).prop_map(|(session, by_operator)| What::Close(session, by_operator)),
        2 => (select(RESOURCES.to_vec()), prop::option::of(0_usize..3), any::<bool>())
            .prop_map(|(resource, token, skip)| What::Force { resource, token, skip }),
        1 => (0_u64..200).prop_map(What::Recover),
    ]
}

fn pass() -> impl Strategy<Value = Pass> {
    let ms = prop_oneof![
        10 => 0_u64..1_200,
        8 => 1_000_u64..8_000,
        4 => 8_000_u64..25_000,
        2 => 25_000_u64..120_000,
        1 => 600_000_u64..900_000,
    ];
    (ms, 0_u8..10).prop_map(|(ms, how)| match how {
        0..6 => Pass::Ticking(ms),
        6..8 => Pass::Late(ms),
        _ => Pass::Unnoticed(ms.min(20_000)),
    })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let asked = (prop::bool::weighted(0.9), prop::option::weighted(0.25, 0_u8..20), what())
        .prop_map(|(first, key, what)| Asked { tenant: TENANTS[usize::from(!first)], key, what });
    prop_oneof![
        24 => asked.prop_map(Step::Ask),
        8 => pass().prop_map(Step::Pass),
        1 => select(vec![1_usize, 100, 100_000]).prop_map(Step::Restart),
        1 => Just(Step::Snapshot),
        1 => prop::bool::weighted(0.8).prop_map(Step::Room),
    ]
}

/// What commands can be about.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) leases: Vec<LeaseId>,
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) waiting: Vec<Ticket>,
    pub(crate) tokens: Vec<u64>,
    /// Sessions, each with a lease whose ending it has not seen.
    pub(crate) unseen: Vec<(SessionId, LeaseId)>,
}

impl Known {
    pub(crate) fn new() -> Self {
        let (leases, sessions) = (vec![ids::lease("never")], vec![ids::session("never")]);
        Self { leases, sessions, waiting: Vec::new(), tokens: Vec::new(), unseen: Vec::new() }
    }
}

/// The n-th from the end, so that what was used lately is used again.
fn lately<T: Copy>(used: &[T], n: usize) -> T {
    used[used.len() - 1 - n % used.len()]
}

impl Asked {
    pub(crate) fn request(&self, number: u64, known: &mut Known) -> Request {
        Request {
            ticket: Ticket(number),
            tenant: TenantName::new(self.tenant).unwrap(),
            identity: None,
            key: self.key.map(|key| RequestKey::new(&format!("k{key}")).unwrap()),
            command: self.command(number, known),
        }
    }

    fn command(&self, number: u64, known: &mut Known) -> Command {
        let Known { leases, sessions, waiting, tokens, unseen } = known;
        // Every third drawn id ends late after a restart.
        let spread = if number.is_multiple_of(3) { "Z" } else { "D" };
        match &self.what {
            What::Acquire { id, acquire, session, repeats } => {
                let lease_id = match id {
                    Id::Drawn => ids::lease(&format!("{spread}{number}")),
                    Id::Chosen(n) => ids::lease(&format!("L{n}")),
                    Id::Again(n) => lately(leases, *n),
                };
                leases.push(lease_id);
                let mut acquire = Acquire { lease_id, ..(**acquire).clone() };
                acquire.session = session.map(|n| lately(sessions, n));
                if *repeats && (acquire.lease_id_chosen || self.key.is_some()) {
                    plain(&mut acquire);
                }
                Command::Acquire(acquire)
            }
            What::Renew(lease, ms) => Command::Renew(Renew {
                lease_id: lately(leases, *lease),
                ttl: ms.map(ttl),
                report: RenewalReport::default(),
                lists_locks: true,
            }),
            What::Release(lease) => Command::Release { lease_id: lately(leases, *lease) },
            What::Resign(lease, to) => {
                Command::Resign { lease_id: lately(leases, *lease), to: to.map(owner) }
            }
            What::Proclaim(lease, value) => {
                Command::Proclaim { lease_id: lately(leases, *lease), value: format!("v{value}").into() }
            }
            What::Withdraw(n) if waiting.is_empty() => Command::Withdraw { waiter: Ticket(*n as u64) },
            What::Withdraw(n) => Command::Withdraw { waiter: lately(waiting, *n) },
            What::Open(who, ms) => {
                let session_id = ids::session(&format!("{spread}{number}"));
                sessions.push(session_id);
                let (owner, ttl) = (owner(*who), ttl(*ms));
                Command::OpenSession(OpenSession { session_id, owner, ttl, labels: Labels::default() })
            }
            What::Keep(session, ms, seen) => {
                let mut session_id = lately(sessions, *session);
                let mut seen_ended: Vec<_> = seen.iter().map(|n| lately(leases, *n)).collect();
                if let (Some(n), false) = (seen.first(), unseen.is_empty()) {
                    let (of, lease_id) = lately(unseen, *n);
                    session_id = of;
                    seen_ended.push(lease_id);
                }
                let (ttl, report) = (ms.map(ttl), RenewalReport::default());
                Command::RenewSession(RenewSession { session_id, ttl, seen_ended, report })
            }
            What::Close(session, by_operator) => Command::CloseSession {
                session_id: lately(sessions, *session),
                by_operator: by_operator.then(operator),
            },
            What::Force { resource, token, skip } => Command::ForceRelease(ForceRelease {
                resource: ResourceName::new(resource).unwrap(),
                target: token.map_or(ForceTarget::All, |n| {
                    let number = if tokens.is_empty() { 1 } else { lately(tokens, n) };
                    ForceTarget::Token(FencingToken::new(number).unwrap())
                }),
                skip_lock_delay: *skip,
                operator: operator(),
            }),
            What::Recover(token_floor) => {
                Command::Recover(Recover { token_floor: *token_floor, operator: operator() })
            }
        }
    }
}

fn operator() -> Operator {
    Operator { actor: "ops".into(), reason: "because".into() }
}

/// Makes acquires alike, so that retries under one id or key are often the same command.
fn plain(acquire: &mut Acquire) {
    acquire.resource = ResourceName::new(RESOURCES[0]).unwrap();
    acquire.sharing = Sharing::Exclusive;
    (acquire.lock_delay_ms, acquire.max_hold_ms) = (0, None);
    if acquire.session.is_none() {
        acquire.ttl = Some(ttl(15_000));
    }
}
