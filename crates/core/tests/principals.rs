//! What is bound to a principal, who the principals are, and how much a tenant may have.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use leasehold_core::{
    Acquire, AddCredential, AuditAction, ClusterSecret, Command, Credential, OpenSession, Operator, Proof,
    Query, Quota, Quotas, RaiseFormat, Refusal, Renew, RenewSession, RenewalReport, Reply, Request,
    RevokeCredential, Ticket, Usage,
};
use leasehold_types::{
    Class, CredentialId, Durability, EndReason, Labels, LeaseId, OwnerId, PrincipalName, RequestKey,
    ResourceName, Role, SessionId, TenantName, Ttl, TtlBounds, WallTime,
};
use support::World;
use support::ids::{lease, session};

struct Callers {
    world: World,
    tickets: u64,
}

impl Callers {
    fn new() -> Self {
        let mut callers = Self { world: World::new(Durability::Durable), tickets: 0 };
        let secret = ClusterSecret::from_bytes([1; 32]);
        let raise = Command::RaiseFormat(RaiseFormat { format: 2, secret, operator: operator() });
        callers.ask(None, raise);
        callers
    }

    fn ask_all(&mut self, identity: Option<&str>, tenant: &str, command: Command) -> Vec<(Ticket, Reply)> {
        self.tickets += 1;
        let request = Request {
            ticket: Ticket(self.tickets),
            tenant: TenantName::new(tenant).unwrap(),
            identity: identity.map(Into::into),
            key: None,
            command,
        };
        self.world.decide(request).replies
    }

    fn ask(&mut self, identity: Option<&str>, command: Command) -> Reply {
        self.ask_all(identity, "acme", command).remove(0).1
    }
}

fn operator() -> Operator {
    Operator { actor: "ops".into(), reason: "test".into() }
}

fn acquire(id: &str, name: &str, in_session: Option<SessionId>) -> Acquire {
    let alone = in_session.is_none();
    Acquire {
        owner: alone.then(|| OwnerId::new("w").unwrap()),
        ttl: alone.then(|| ttl(15_000)),
        class: Class::Efficiency,
        session: in_session,
        ..Acquire::plain(ResourceName::new(name).unwrap(), lease(id))
    }
}

fn ttl(ms: u64) -> Ttl {
    Ttl::new(ms, TtlBounds::default()).unwrap()
}

fn renew(id: LeaseId) -> Command {
    let report = RenewalReport::default();
    Command::Renew(Renew { lease_id: id, ttl: None, report, lists_locks: true })
}

fn open(id: &str) -> Command {
    Command::OpenSession(OpenSession {
        session_id: session(id),
        owner: OwnerId::new("w").unwrap(),
        ttl: ttl(15_000),
        labels: Labels::default(),
    })
}

const UNKNOWN: Reply =
    Reply::Refused(Refusal::LeaseNotHeld { reason: EndReason::Unknown, max_hold: false, token: None });

#[test]
fn a_lease_is_its_principals_alone_while_it_lives_and_after() {
    let mut callers = Callers::new();
    let id = lease("l");
    let granted = callers.ask(Some("web"), Command::Acquire(acquire("l", "a", None)));
    assert!(matches!(granted, Reply::Granted(_)));
    // The same id in other hands is unknown: to use, to look at, to take over.
    assert_eq!(callers.ask(Some("batch"), renew(id)), UNKNOWN);
    assert_eq!(callers.ask(Some("batch"), Command::Release { lease_id: id }), UNKNOWN);
    let proclaim = Command::Proclaim { lease_id: id, value: "v".into() };
    assert_eq!(callers.ask(Some("batch"), proclaim), UNKNOWN);
    assert_eq!(callers.ask(Some("batch"), Command::Resign { lease_id: id, to: None }), UNKNOWN);
    assert_eq!(callers.ask(Some("batch"), Command::Acquire(acquire("l", "a", None))), UNKNOWN);
    let show = Command::Query(Query::Lease(id));
    assert_eq!(callers.ask(Some("batch"), show.clone()), Reply::Refused(Refusal::NotFound));
    // Its own principal, and who may look at everything, see it.
    assert!(matches!(callers.ask(Some("web"), show.clone()), Reply::Lease(_)));
    assert!(matches!(callers.ask(None, show.clone()), Reply::Lease(_)));
    assert!(matches!(callers.ask(Some("web"), renew(id)), Reply::Renewed(_)));
    assert!(matches!(callers.ask(Some("web"), Command::Release { lease_id: id }), Reply::Released { .. }));
    assert_eq!(callers.ask(Some("batch"), show), Reply::Refused(Refusal::NotFound));
    assert_eq!(callers.ask(Some("batch"), renew(id)), UNKNOWN);
    assert_eq!(callers.ask(Some("batch"), Command::Acquire(acquire("l", "a", None))), UNKNOWN);
}

#[test]
fn a_session_and_what_is_in_it_are_its_principals_alone() {
    let mut callers = Callers::new();
    let id = session("s");
    callers.ask(Some("web"), open("s"));
    let ended = Reply::Refused(Refusal::SessionEnded);
    let in_it = Command::Acquire(acquire("l", "a", Some(id)));
    assert_eq!(callers.ask(Some("batch"), in_it.clone()), ended);
    assert!(matches!(callers.ask(Some("web"), in_it), Reply::Granted(_)));
    assert_eq!(callers.ask(Some("batch"), renew(lease("l"))), UNKNOWN);
    let keep = Command::RenewSession(RenewSession {
        session_id: id,
        ttl: None,
        seen_ended: Vec::new(),
        report: RenewalReport::default(),
    });
    assert_eq!(callers.ask(Some("batch"), keep), ended);
    let close = |by_operator| Command::CloseSession { session_id: id, by_operator };
    assert_eq!(callers.ask(Some("batch"), close(None)), Reply::Refused(Refusal::NotFound));
    // An operator says why, and is audited.
    let closed = callers.ask(Some("ops"), close(Some(operator())));
    assert!(matches!(closed, Reply::SessionClosed { released: 1, .. }));
}

#[test]
fn a_release_tells_which_session_the_lease_lived_in() {
    let mut callers = Callers::new();
    callers.ask(None, open("s"));
    let in_it = Some(session("s"));
    callers.ask(None, Command::Acquire(acquire("plain", "a", in_it)));
    let delayed = Acquire { lock_delay_ms: 1_000, ..acquire("delayed", "b", in_it) };
    callers.ask(None, Command::Acquire(delayed));
    callers.ask(None, Command::Acquire(acquire("own", "c", None)));
    // Asked again it is told as far as it is remembered: of what was plain.
    for (id, first, again) in [("plain", in_it, in_it), ("delayed", in_it, None), ("own", None, None)] {
        for expected in [first, again] {
            let released = callers.ask(None, Command::Release { lease_id: lease(id) });
            let Reply::Released { session, .. } = released else { panic!("{id}: {released:?}") };
            assert_eq!(session, expected, "{id}");
        }
    }
}

#[test]
fn nobody_withdraws_anothers_waiter_by_its_id() {
    let mut callers = Callers::new();
    callers.ask(Some("web"), Command::Acquire(acquire("held", "a", None)));
    let waiting = Acquire { wait_ms: 60_000, ..acquire("wants", "a", None) };
    assert!(callers.ask_all(Some("web"), "acme", Command::Acquire(waiting.clone())).is_empty());
    assert_eq!(callers.ask(Some("batch"), Command::Release { lease_id: lease("wants") }), UNKNOWN);
    assert_eq!(callers.ask(Some("batch"), Command::Acquire(waiting)), UNKNOWN);
    let replies = callers.ask_all(Some("web"), "acme", Command::Release { lease_id: lease("held") });
    assert!(matches!(replies[..], [_, (_, Reply::Granted(_))]), "{replies:?}");
}

fn credential(number: u8, proof: Proof) -> Box<Credential> {
    Box::new(Credential {
        id: CredentialId::from_bytes([number; 8]),
        principal: PrincipalName::new("web").unwrap(),
        tenant: TenantName::new("acme").unwrap(),
        role: Role::Client,
        scopes: Vec::new(),
        proof,
        created_at: WallTime(0),
        expires_at: None,
    })
}

fn add(credential: Box<Credential>) -> Command {
    Command::AddCredential(AddCredential { credential, operator: operator() })
}

#[test]
fn credentials_come_and_go_with_an_audit_entry_each() {
    let mut callers = Callers::new();
    let san = Proof::San("spiffe://acme/web".into());
    callers.world.clock_ms = 5_000;
    callers.ask(Some("root"), add(credential(1, Proof::Secret([5; 32]))));
    callers.ask(Some("root"), add(credential(2, san.clone())));
    let taken = callers.ask(Some("root"), add(credential(3, san)));
    assert_eq!(taken, Reply::Refused(Refusal::CredentialTaken));
    let (known, now) = (callers.world.table.journaled().credentials(), callers.world.now().wall);
    assert!(known.iter().all(|credential| credential.created_at == now), "by the service's clock");
    assert_eq!(known.by_san("spiffe://acme/web").unwrap().id, CredentialId::from_bytes([2; 8]));
    let revoke = |number| {
        let id = CredentialId::from_bytes([number; 8]);
        Command::RevokeCredential(RevokeCredential { id, operator: operator() })
    };
    assert!(matches!(callers.ask(Some("root"), revoke(2)), Reply::CredentialRevoked { .. }));
    assert_eq!(callers.ask(Some("root"), revoke(2)), Reply::Refused(Refusal::NotFound));
    assert!(callers.world.table.journaled().credentials().by_san("spiffe://acme/web").is_none());
    let audit = Command::Query(Query::Audit { resource: None, after: 0, page_size: 10 });
    let Reply::Audit { entries, .. } = callers.ask(None, audit) else { panic!() };
    let actions: Vec<_> = entries.iter().skip(1).map(|entry| entry.action).collect();
    use AuditAction::{CredentialCreate, CredentialRevoke};
    assert_eq!(actions, [CredentialCreate, CredentialCreate, CredentialRevoke]);
    assert_eq!(entries[1].identity.as_deref(), Some("root"));
    assert_eq!(&*entries[1].reason, "0101010101010101 of web, client: test");
    let whole = Command::Query(Query::WholeAudit { after: 1, page_size: 2 });
    let Reply::Audit { entries: page, more } = callers.ask(None, whole) else { panic!() };
    assert!(page == entries[1..3] && more, "{page:?}");
    let Reply::AuditVerified(verified) = callers.ask(None, Command::Query(Query::AuditVerify)) else {
        panic!()
    };
    assert!(verified.intact);
}

#[test]
fn credentials_are_listed_page_by_page_in_the_order_of_their_ids() {
    let mut callers = Callers::new();
    for number in [3, 1, 2] {
        callers.ask(None, add(credential(number, Proof::Secret([number; 32]))));
    }
    let mut list = |after: Option<u8>| {
        let after = after.map(|number| CredentialId::from_bytes([number; 8]));
        let query = Query::Credentials { after, page_size: 2 };
        let Reply::Credentials { credentials, next } = callers.ask(None, Command::Query(query)) else {
            panic!()
        };
        let ids = credentials.iter().map(|credential| credential.id.as_bytes()[0]).collect::<Vec<_>>();
        (ids, next.map(|id| id.as_bytes()[0]))
    };
    assert_eq!(list(None), (vec![1, 2], Some(2)));
    assert_eq!(list(Some(2)), (vec![3], None));
    assert_eq!(list(Some(1)), (vec![2, 3], None));
    assert_eq!(list(Some(3)), (vec![], None));
}

#[test]
fn settings_are_noted_when_they_are_not_those_noted_last() {
    let mut callers = Callers::new();
    let first_entry = 2;
    let note = |settings: &str, is_default| {
        let operator = Operator { actor: "node".into(), reason: settings.into() };
        Command::NoteSettings { operator, is_default, quotas: Quotas::default() }
    };
    // Nothing was ever declared, and nothing is.
    for (settings, is_default, noted) in [
        ("none", true, None),
        ("a", false, Some(first_entry)),
        ("a", false, None),
        ("b", false, Some(first_entry + 1)),
        ("a", false, Some(first_entry + 2)),
        ("none", true, Some(first_entry + 3)),
        ("none", true, None),
    ] {
        let reply = callers.ask(None, note(settings, is_default));
        assert_eq!(reply, Reply::SettingsNoted { audit_seq: noted }, "{settings}");
        // Other entries of the audit log are no settings.
        assert!(callers.world.table.journaled().credentials().is_empty());
    }
    let mut old = Callers { world: World::new(Durability::Durable), tickets: 0 };
    assert_eq!(old.ask(None, note("a", false)), Reply::SettingsNoted { audit_seq: None });
}

#[test]
fn a_journal_of_the_first_format_takes_no_credentials() {
    let mut callers = Callers { world: World::new(Durability::Durable), tickets: 0 };
    let refused = callers.ask(None, add(credential(1, Proof::Secret([5; 32]))));
    assert_eq!(refused, Reply::Refused(Refusal::FormatTooOld));
}

#[test]
fn quotas_hold_for_each_tenant_alone() {
    let mut callers = Callers::new();
    let quota = Quota { leases: 2, sessions: 1, waiters: 1, bytes: 20 };
    let named = [(TenantName::new("acme").unwrap(), quota)].into();
    callers.world.table.set_quotas(Quotas { others: Quota::default(), named });
    let exceeded = |what, limit| Reply::Refused(Refusal::QuotaExceeded { what, limit });
    let take = |id: &str, name: &str| Command::Acquire(acquire(id, name, None));
    callers.ask(None, take("1", "a"));
    callers.ask(None, take("2", "b"));
    assert_eq!(callers.ask(None, take("3", "c")), exceeded("locks", 2));
    // A retry is no further lease, and another tenant has a quota of its own.
    assert!(matches!(callers.ask(None, take("2", "b")), Reply::Granted(_)));
    for id in ["o1", "o2", "o3"] {
        let other = callers.ask_all(None, "other", take(id, id)).remove(0).1;
        assert!(matches!(other, Reply::Granted(_)));
    }
    let waiting = |id: &str| Command::Acquire(Acquire { wait_ms: 60_000, ..acquire(id, "a", None) });
    callers.ask(None, Command::Release { lease_id: lease("2") });
    assert!(callers.ask_all(None, "acme", waiting("w1")).is_empty());
    assert_eq!(callers.ask(None, waiting("w2")), exceeded("waiters", 1));
    assert_eq!(callers.ask(None, take("4", "a name that is too long")), exceeded("bytes", 20));
    callers.ask(None, open("s1"));
    assert_eq!(callers.ask(None, open("s2")), exceeded("sessions", 1));
    assert_eq!(callers.world.table.journaled().usage_of("acme").leases, 1);
}

#[test]
fn bytes_of_names_labels_and_values_are_counted_to_the_last_one() {
    let limited = |bytes| {
        let mut callers = Callers::new();
        let others = Quota { bytes, ..Quota::default() };
        callers.world.table.set_quotas(Quotas { others, ..Quotas::default() });
        callers
    };
    let exceeded = |limit| Reply::Refused(Refusal::QuotaExceeded { what: "bytes", limit });
    // 3 of the name, 2 and 5 of a label, 7 of the value.
    let labels = Labels::new([("ab", "cdefg")]).unwrap();
    let full = Acquire { labels: labels.clone(), value: Some("1234567".into()), ..acquire("l", "abc", None) };
    let full = Command::Acquire(full);
    assert_eq!(limited(16).ask(None, full.clone()), exceeded(16));
    let mut callers = limited(17);
    assert!(matches!(callers.ask(None, full), Reply::Granted(_)));
    assert_eq!(callers.world.table.journaled().usage_of("acme").bytes, 17);
    assert_eq!(callers.ask(None, Command::Acquire(acquire("m", "d", None))), exceeded(17));
    // 3 of the owner, and the label.
    let owner = OwnerId::new("www").unwrap();
    let open = OpenSession { session_id: session("s"), owner, ttl: ttl(15_000), labels };
    let open = Command::OpenSession(open);
    assert_eq!(limited(9).ask(None, open.clone()), exceeded(9));
    let mut callers = limited(10);
    assert!(matches!(callers.ask(None, open), Reply::SessionOpened(_)));
    assert_eq!(callers.world.table.journaled().usage_of("acme").bytes, 10);
    let close = Command::CloseSession { session_id: session("s"), by_operator: None };
    callers.ask(None, close);
    assert_eq!(callers.world.table.journaled().usage_of("acme"), Usage::default());
}

#[test]
fn a_waiter_whose_turn_comes_above_the_quota_is_told_so() {
    let mut callers = Callers::new();
    callers.ask(None, Command::Acquire(acquire("1", "a", None)));
    let waiting = Acquire { wait_ms: 60_000, ..acquire("w", "a", None) };
    assert!(callers.ask_all(None, "acme", Command::Acquire(waiting)).is_empty());
    callers.ask(None, Command::Acquire(acquire("2", "b", None)));
    let others = Quota { leases: 1, ..Quota::default() };
    callers.world.table.set_quotas(Quotas { others, ..Quotas::default() });
    let replies = callers.ask_all(None, "acme", Command::Release { lease_id: lease("1") });
    let refused = Reply::Refused(Refusal::QuotaExceeded { what: "locks", limit: 1 });
    assert_eq!(replies[1].1, refused);
}

#[test]
fn a_key_that_was_used_makes_no_second_credential() {
    let mut callers = Callers::new();
    let key = Some(RequestKey::new("k").unwrap());
    let request = |ticket, command| Request {
        ticket: Ticket(ticket),
        tenant: TenantName::new("acme").unwrap(),
        identity: None,
        key: key.clone(),
        command,
    };
    callers.world.decide(request(90, Command::Release { lease_id: lease("x") }));
    let again = callers.world.decide(request(91, add(credential(1, Proof::Secret([5; 32])))));
    assert_eq!(again.replies[0].1, Reply::Refused(Refusal::IdempotencyMismatch));
}
