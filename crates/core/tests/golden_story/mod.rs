//! A lawful story with every kind of fact in it, each field set somewhere and left out elsewhere; the state after it has
//! every kind of record.

use leasehold_core::{
    ClusterSecret, Credential, CredentialChange, Fact, ForceTarget, Forced, Granted, LifeId, Operator, Proof,
    RaisedBy, SessionBegan, SessionEnd, Sharing, TookOver,
};
use leasehold_types::{
    Class, CredentialId, Epoch, FencingToken, Generation, Labels, OwnerId, Permit, PrincipalName, RequestKey,
    ResourceKey, ResourceName, Role, Scope, TenantName, Ttl, Verb, WallTime,
};

use crate::support::ids::{lease, session};

/// When it begins.
const AT: WallTime = WallTime(1_800_000_000_000);

fn tenant() -> TenantName {
    TenantName::new("acme").unwrap()
}

fn resource(name: &str) -> ResourceKey {
    ResourceKey::new(&tenant(), &ResourceName::new(name).unwrap())
}

fn key(name: &str) -> Option<RequestKey> {
    Some(RequestKey::new(name).unwrap())
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn ttl(ms: u64) -> Ttl {
    Ttl::from_journal(ms).unwrap()
}

fn operator() -> Operator {
    Operator { actor: "ops".into(), reason: "stuck since monday".into() }
}

fn plain(id: &str, name: &str, number: u64) -> Granted {
    Granted {
        lease_id: lease(id),
        resource: resource(name),
        owner: OwnerId::new("w1@host:7").unwrap(),
        session: None,
        sharing: Sharing::Exclusive,
        permit: None,
        class: Class::Correctness,
        ttl: ttl(15_000),
        max_hold_ms: None,
        lock_delay_ms: 0,
        labels: Labels::default(),
        value: None,
        token: token(number),
        at: AT,
        key: None,
        principal: None,
    }
}

fn full() -> Granted {
    Granted {
        sharing: Sharing::Semaphore { limit: 300 },
        permit: Some(Permit(0)),
        class: Class::Efficiency,
        ttl: ttl(3_600_000),
        max_hold_ms: Some(86_400_000),
        lock_delay_ms: 20_000,
        labels: Labels::new([("team", "billing"), ("ü", "")]).unwrap(),
        value: Some("https://node-1:7420".into()),
        key: key("key of a grant"),
        ..plain("full", "pool/ü", 2)
    }
}

fn granted(granted: Granted) -> Fact {
    Fact::Granted(Box::new(granted))
}

fn began(id: &str, key: Option<RequestKey>, labels: Labels) -> Fact {
    Fact::SessionOpened(Box::new(SessionBegan {
        session_id: session(id),
        tenant: tenant(),
        owner: OwnerId::new("w2").unwrap(),
        ttl: ttl(60_000),
        labels,
        at: AT,
        key,
        principal: None,
    }))
}

fn credential(id: u8, proof: Proof) -> Credential {
    Credential {
        id: CredentialId::from_bytes([id; 8]),
        principal: PrincipalName::new("billing@host").unwrap(),
        tenant: tenant(),
        role: Role::Client,
        scopes: Vec::new(),
        proof,
        created_at: AT,
        expires_at: None,
    }
}

fn added(credential: Credential) -> Fact {
    Fact::CredentialAdded { credential: Box::new(credential), change: change() }
}

fn change() -> CredentialChange {
    CredentialChange { operator: operator(), identity: Some("root".into()), at: AT }
}

fn session_ended(id: &str, cause: SessionEnd, key: Option<RequestKey>) -> Fact {
    Fact::SessionEnded { session_id: session(id), cause, at: AT, key }
}

fn expired(id: &str, max_hold: bool) -> Fact {
    Fact::Expired { lease_id: lease(id), max_hold, at: AT.plus_ms(20_000) }
}

fn forced(name: &str, ids: &[&str], target: ForceTarget, key: Option<RequestKey>) -> Fact {
    Fact::ForceReleased(Box::new(Forced {
        resource: resource(name),
        lease_ids: ids.iter().map(|id| lease(id)).collect(),
        target,
        skip_lock_delay: key.is_some(),
        operator: operator(),
        identity: key.is_some().then(|| "cn=ops".into()),
        at: AT,
        key,
    }))
}

fn bound(granted: Granted) -> Granted {
    Granted { principal: Some("billing@host".into()), ..granted }
}

fn bound_session(id: &str) -> Fact {
    match began(id, None, Labels::default()) {
        Fact::SessionOpened(began) => {
            Fact::SessionOpened(Box::new(SessionBegan { principal: Some("billing@host".into()), ..*began }))
        }
        _ => unreachable!("a session begins with its opening"),
    }
}

/// Names and facts, in order.
pub(crate) fn story() -> Vec<(&'static str, Fact)> {
    let in_session = |id, name, number| Granted { session: Some(session("S1")), ..plain(id, name, number) };
    let delayed = |granted: Granted| Granted { lock_delay_ms: 9_000, ..granted };
    let shared = |granted: Granted| Granted { sharing: Sharing::Shared, ..granted };
    let permit = |granted: Granted| Granted {
        sharing: Sharing::Semaphore { limit: 2 },
        permit: Some(Permit(1)),
        ..granted
    };
    let life = |id| LifeId::Lease(lease(id));
    let by_operator = SessionEnd::ByOperator { operator: operator(), identity: Some("cn=ops".into()) };
    let labels = Labels::new([("zone", "b")]).unwrap();
    vec![
        ("granted-plain", granted(plain("plain", "a/1", 1))),
        ("granted-full", granted(full())),
        ("session-opened", began("S1", None, Labels::default())),
        ("session-opened-with-key", began("S2", key("key of a session"), labels)),
        ("granted-in-session", granted(in_session("in1", "a/2", 3))),
        ("granted-shared-in-session", granted(shared(in_session("in2", "a/3", 4)))),
        ("granted-to-be-released", granted(Granted { key: key("key"), ..plain("gone1", "b/1", 5) })),
        ("released", Fact::Released { lease_id: lease("gone1"), at: AT, key: None }),
        ("granted-to-be-released-again", granted(plain("gone2", "b/1", 6))),
        (
            "released-with-key",
            Fact::Released { lease_id: lease("gone2"), at: AT, key: key("key of a release") },
        ),
        ("granted-to-expire", granted(delayed(plain("gone3", "b/2", 7)))),
        ("expired", expired("gone3", false)),
        ("granted-shared-to-expire", granted(delayed(shared(plain("gone4", "b/3", 8))))),
        ("expired-by-max-hold", expired("gone4", true)),
        ("granted-permit-to-expire", granted(delayed(permit(plain("gone5", "b/4", 9))))),
        ("expired-permit", expired("gone5", false)),
        ("granted-to-close-for-a-while", granted(delayed(plain("gone6", "b/5", 10)))),
        ("expired-for-a-while", expired("gone6", false)),
        ("delay-ended", Fact::DelayEnded { resource: resource("b/5"), token: token(10) }),
        ("force-released-token", forced("a/3", &["in2"], ForceTarget::Token(token(4)), None)),
        ("granted-to-be-forced", granted(permit(plain("gone7", "b/6", 11)))),
        ("force-released-all", forced("b/6", &["gone7"], ForceTarget::All, key("key of a force"))),
        ("force-released-nobody", forced("b/7", &[], ForceTarget::All, None)),
        ("ttl-changed", Fact::TtlChanged { of: life("plain"), ttl: ttl(30_000), floor_ms: 0 }),
        (
            "ttl-changed-of-a-session",
            Fact::TtlChanged { of: LifeId::Session(session("S1")), ttl: ttl(5_000), floor_ms: 60_000 },
        ),
        ("noted", Fact::Noted { of: life("full"), remaining_ms: 2_700_000, age_ms: 900_000 }),
        (
            "noted-session",
            Fact::Noted { of: LifeId::Session(session("S2")), remaining_ms: 45_000, age_ms: 0 },
        ),
        ("note-cleared", Fact::NoteCleared { of: life("full") }),
        ("id-closed", Fact::IdClosed { tenant: tenant(), lease_id: lease("closed1"), key: None }),
        (
            "id-closed-with-key",
            Fact::IdClosed { tenant: tenant(), lease_id: lease("closed2"), key: key("key of nothing") },
        ),
        ("session-opened-to-close", began("S3", key("key of another"), Labels::default())),
        ("session-closed", session_ended("S3", SessionEnd::Closed, key("key of a close"))),
        ("session-opened-to-expire", began("S4", None, Labels::default())),
        ("session-expired", session_ended("S4", SessionEnd::Expired, None)),
        ("session-opened-to-end", began("S5", None, Labels::default())),
        ("session-ended-by-operator", session_ended("S5", by_operator, None)),
        ("granted-to-expire-in-session", granted(in_session("in3", "a/4", 12))),
        ("expired-in-session", expired("in3", true)),
        ("endings-seen", Fact::EndingsSeen { session_id: session("S1"), lease_ids: vec![lease("in2")] }),
        ("forgotten", Fact::Forgotten { through: 1 }),
        (
            "recovered",
            Fact::Recovered {
                generation: Generation(2),
                token_floor: 1 << 40,
                operator: operator(),
                identity: None,
                at: AT,
            },
        ),
        ("proclaimed", Fact::Proclaimed { lease_id: lease("plain"), value: "node-2".into() }),
        ("resigned", Fact::Resigned),
        (
            "took-over",
            Fact::TookOver(Box::new(TookOver {
                epoch: Epoch(7),
                node: "node-2".into(),
                url: "http://node-2.example:7420".into(),
            })),
        ),
        (
            "format-raised",
            Fact::FormatRaised {
                format: 2,
                by: Some(Box::new(RaisedBy { operator: operator(), identity: Some("ops".into()) })),
                at: AT,
            },
        ),
        ("secret-made", Fact::SecretMade(ClusterSecret::from_bytes([7; 32]))),
        ("credential-added", added(credential(1, Proof::Secret([9; 32])))),
        (
            "credential-added-full",
            added(Credential {
                role: Role::Operator,
                scopes: vec![
                    Scope::new(&[], "a/").unwrap(),
                    Scope::new(&[Verb::Acquire, Verb::Read], "b/").unwrap(),
                ],
                expires_at: Some(AT.plus_ms(86_400_000)),
                ..credential(2, Proof::San("spiffe://acme/billing".into()))
            }),
        ),
        (
            "credential-revoked",
            Fact::CredentialRevoked { id: CredentialId::from_bytes([1; 8]), change: change() },
        ),
        ("settings-changed", Fact::SettingsChanged { operator: operator(), at: AT }),
        ("granted-to-a-principal", granted(bound(plain("bound1", "c/1", (1 << 40) + 1)))),
        ("granted-to-a-principal-to-be-released", granted(bound(plain("bound2", "c/2", (1 << 40) + 2)))),
        ("released-by-a-principal", Fact::Released { lease_id: lease("bound2"), at: AT, key: None }),
        ("session-opened-by-a-principal", bound_session("S6")),
        ("session-opened-by-a-principal-to-close", bound_session("S7")),
        ("session-closed-by-a-principal", session_ended("S7", SessionEnd::Closed, None)),
        ("format-raised-to-3", Fact::FormatRaised { format: 3, by: None, at: AT }),
        ("backed-up", Fact::BackedUp { operator: operator(), identity: None, at: AT }),
        (
            "backed-up-by-a-principal",
            Fact::BackedUp { operator: operator(), identity: Some("root".into()), at: AT },
        ),
    ]
}
