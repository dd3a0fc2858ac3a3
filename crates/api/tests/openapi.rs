//! The OpenAPI document says what the types do: the same fields, the same required ones, the same words.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeSet;

use leasehold_api::*;
use leasehold_types::{
    Class, ClusterId, CredentialId, Durability, EndReason, FencingToken, Guarantee, Labels, LeaseId, Mode,
    OwnerId, Permit, PrincipalName, ResourceName, SessionId, TenantName, WallTime,
};
use serde::Serialize;
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(OPENAPI).expect("the document is JSON")
}

fn schema(name: &str) -> Value {
    let document = document();
    let schema = document["components"]["schemas"].get(name);
    schema.unwrap_or_else(|| panic!("no schema {name}")).clone()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

/// Checks a type against its schema: `full` has every field, `least` only what is always there.
fn check<T: Serialize>(name: &str, full: &T, least: &T) {
    let schema = schema(name);
    assert_eq!(keys(&serde_json::to_value(full).unwrap()), keys(&schema["properties"]), "fields of {name}");
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let required: BTreeSet<_> = required.iter().map(|key| key.as_str().unwrap().to_owned()).collect();
    assert_eq!(keys(&serde_json::to_value(least).unwrap()), required, "required fields of {name}");
}

fn resource() -> ResourceName {
    ResourceName::new("billing/close").unwrap()
}
fn owner() -> OwnerId {
    OwnerId::new("ann").unwrap()
}
fn token() -> FencingToken {
    FencingToken::new(7).unwrap()
}
fn lease() -> LeaseId {
    LeaseId::from_bytes(leasehold_types::ids::random())
}
fn session() -> SessionId {
    SessionId::from_bytes(leasehold_types::ids::random())
}
fn at() -> Timestamp {
    Timestamp(WallTime(1_794_774_082_123))
}
fn labels() -> Labels {
    Labels::new([("job", "x")]).unwrap()
}

#[test]
fn requests() {
    let least = AcquireRequest::new(resource());
    let full = AcquireRequest {
        resource: resource(),
        owner_id: Some(owner()),
        ttl_ms: Some(1),
        ttl_seconds: Some(1),
        wait_ms: Some(1),
        mode: Some(Mode::Semaphore),
        limit: Some(1),
        class: Some(Class::Efficiency),
        session_id: Some(session()),
        lease_id: Some(lease()),
        lock_delay_ms: Some(1),
        max_hold_ms: Some(1),
        labels: labels(),
    };
    check("AcquireRequest", &full, &least);
    let full = RenewRequest {
        ttl_ms: Some(1),
        ttl_seconds: Some(1),
        missed: Some(1),
        last_error: Some("e".into()),
        max_gap_ms: Some(1),
    };
    check("RenewRequest", &full, &RenewRequest::default());
    let least =
        OpenSessionRequest { owner_id: owner(), ttl_ms: None, ttl_seconds: None, labels: Labels::default() };
    let full =
        OpenSessionRequest { owner_id: owner(), ttl_ms: Some(1), ttl_seconds: Some(1), labels: labels() };
    check("OpenSessionRequest", &full, &least);
    let full = RenewSessionRequest {
        ttl_ms: Some(1),
        ttl_seconds: Some(1),
        seen_ended: vec![lease()],
        missed: Some(1),
        last_error: Some("e".into()),
        max_gap_ms: Some(1),
    };
    check("RenewSessionRequest", &full, &RenewSessionRequest::default());
    let forced = |fencing_token, all, skip_lock_delay| ForceReleaseRequest {
        actor_id: "op".into(),
        reason: "stuck".into(),
        fencing_token,
        all,
        skip_lock_delay,
    };
    check("ForceReleaseRequest", &forced(Some(token()), Some(Yes), Some(true)), &forced(None, None, None));
    let created = |full: bool| CreateCredentialRequest {
        principal: PrincipalName::new("web").unwrap(),
        tenant: full.then(TenantName::default_tenant),
        role: leasehold_types::Role::Client,
        scopes: if full { vec!["orders/".parse().unwrap()] } else { Vec::new() },
        san: full.then(|| "web.example".into()),
        expires_in_seconds: full.then_some(1),
        actor_id: full.then(|| "op".into()),
        reason: full.then(|| "new".into()),
    };
    check("CreateCredentialRequest", &created(true), &created(false));
    let rejection = FenceRejection { resource: resource(), fencing_token: token(), highest_token: token() };
    check("FenceRejection", &rejection, &rejection);
    let report = |rejections| FenceReportRequest { prefix: "a/".into(), enforces: true, rejections };
    check("FenceReportRequest", &report(vec![rejection]), &report(Vec::new()));
    let ask = |permit| ValidateRequest { resource: resource(), fencing_token: token(), permit };
    check("ValidateRequest", &ask(Some(Permit(0))), &ask(None));
}

#[test]
fn credentials() {
    let record = CredentialRecord {
        credential_id: CredentialId::from_bytes([1; 8]),
        principal: PrincipalName::new("web").unwrap(),
        tenant: TenantName::default_tenant(),
        role: leasehold_types::Role::Client,
        scopes: Vec::new(),
        san: None,
        created_at: at(),
        expires_at: None,
    };
    check("CredentialRecord", &record, &record);
    let created = CreateCredentialAnswer { credential: record.clone(), secret: None, audit_seq: 1 };
    check("CreateCredentialAnswer", &created, &created);
    let revoked = RevokeCredentialAnswer { credential: record.clone(), audit_seq: 1 };
    check("RevokeCredentialAnswer", &revoked, &revoked);
    let page = CredentialsPage { credentials: vec![record], next_cursor: None };
    check("CredentialsPage", &page, &page);
    let words: Vec<_> = leasehold_types::Role::ALL.iter().map(|role| json!(role.as_str())).collect();
    assert_eq!(schema("CredentialRole")["enum"], Value::Array(words));
}

fn granted(full: bool) -> GrantedAnswer {
    GrantedAnswer {
        acquired: Yes,
        resource: resource(),
        owner_id: owner(),
        lease_id: lease(),
        fencing_token: token(),
        permit: full.then_some(Permit(0)),
        signed_token: full.then(String::new),
        ttl_ms: 1,
        expires_at: at(),
        created_at: at(),
        mode: Mode::Exclusive,
        class: Class::Correctness,
        guarantee: Guarantee::LeaseOnly,
        session_id: full.then(session),
        warning: full.then(String::new),
    }
}

fn holder(full: bool) -> Holder {
    let permit = full.then_some(Permit(0));
    Holder { owner_id: owner(), fencing_token: token(), permit, expires_at: at(), mode: Mode::Shared }
}

fn record(full: bool) -> LockRecord {
    LockRecord {
        resource: resource(),
        owner_id: owner(),
        lease_id: full.then(lease),
        fencing_token: token(),
        permit: full.then_some(Permit(0)),
        signed_token: full.then(String::new),
        mode: Mode::Semaphore,
        limit: full.then_some(1),
        class: Class::Correctness,
        guarantee: Guarantee::Fenced,
        session_id: full.then(session),
        created_at: at(),
        expires_at: at(),
        ttl_ms: 1,
        remaining_ms: 1,
        held_ms: 1,
        max_hold_ms: full.then_some(1),
        lock_delay_ms: 0,
        labels: labels(),
        renewals: 0,
        missed: 0,
        last_error: full.then(String::new),
        max_gap_ms: 0,
        waiters: 0,
    }
}

#[test]
fn answers_about_locks() {
    check("GrantedAnswer", &granted(true), &granted(false));
    let refused = |full: bool| NotGrantedAnswer {
        acquired: No,
        resource: resource(),
        holders: vec![holder(false)],
        waiters: 0,
        earliest_regrant_at: full.then(at),
    };
    check("NotGrantedAnswer", &refused(true), &refused(false));
    check("Holder", &holder(true), &holder(false));
    let lock = |full: bool| {
        let signed_token = full.then(String::new);
        RenewedLock { resource: resource(), fencing_token: token(), signed_token }
    };
    check("RenewedLock", &lock(true), &lock(false));
    let locks = vec![lock(false)];
    let renewed = RenewAnswer { renewed: Yes, lease_id: lease(), ttl_ms: 1, expires_at: at(), locks };
    check("RenewAnswer", &renewed, &renewed);
    let released = ReleaseAnswer { released: Yes, resource: resource(), fencing_token: token() };
    check("ReleaseAnswer", &released, &released);
    check("LockRecord", &record(true), &record(false));
    let page = LocksPage { locks: vec![], next_cursor: None, as_of: at() };
    check("LocksPage", &page, &page);
}

#[test]
fn answers_about_resources_and_tokens() {
    let ending = |max_hold| EndingRecord {
        owner_id: owner(),
        fencing_token: token(),
        reason: EndReason::Expired,
        max_hold,
        at: at(),
    };
    check("EndingRecord", &ending(true), &ending(false));
    let waiter = WaiterRecord { owner_id: owner(), mode: Mode::Shared, waiting_ms: 1 };
    check("WaiterRecord", &waiter, &waiter);
    let explained = |full: bool| ExplainAnswer {
        resource: resource(),
        holders: vec![],
        waiters: vec![],
        last_token: None,
        endings: vec![],
        contention: 0,
        fence_rejections: 0,
        earliest_regrant_at: full.then(at),
        as_of: at(),
    };
    check("ExplainAnswer", &explained(true), &explained(false));
    let forced = ForceReleaseAnswer { released: vec![], audit_seq: 1 };
    check("ForceReleaseAnswer", &forced, &forced);
    let received = FenceReportAnswer { counts_for_ms: 0 };
    check("FenceReportAnswer", &received, &received);
    let known = |full: bool| KnownFence {
        prefix: "orders/".into(),
        declared: full.then(|| "postgres".into()),
        enforces: full.then_some(true),
        reported_ms_ago: full.then_some(1),
        rejections: 0,
    };
    check("KnownFence", &known(true), &known(false));
    let fences = FencesAnswer { fences: vec![known(true)] };
    check("FencesAnswer", &fences, &fences);
    let usage = TenantUsage { locks: 1, sessions: 1, waiters: 0, bytes: 9 };
    check("TenantUsage", &usage, &usage);
    let some = Some(1);
    let quota = TenantQuota {
        locks: some,
        sessions: some,
        waiters: some,
        watchers: some,
        bytes: some,
        per_second: some,
    };
    check("TenantQuota", &quota, &TenantQuota::default());
    let (name, tenant, role) = ("web".into(), "default".into(), "client".into());
    let identity = IdentityAnswer { open: false, name, tenant, role, usage, quota };
    check("IdentityAnswer", &identity, &identity);
    let validated = ValidateAnswer { current: false, last_token: None };
    check("ValidateAnswer", &validated, &validated);
}

#[test]
fn answers_about_sessions() {
    let opened = OpenSessionAnswer { session_id: session(), ttl_ms: 1, expires_at: at() };
    check("OpenSessionAnswer", &opened, &opened);
    let ended = EndedLease {
        lease_id: lease(),
        resource: resource(),
        fencing_token: token(),
        reason: EndReason::Forced,
    };
    check("EndedLease", &ended, &ended);
    let renewed = RenewSessionAnswer {
        session_id: session(),
        ttl_ms: 1,
        expires_at: at(),
        lock_count: 0,
        ended: vec![ended],
    };
    check("RenewSessionAnswer", &renewed, &renewed);
    let closed = CloseSessionAnswer { ended: Yes, session_id: session(), released: 0 };
    check("CloseSessionAnswer", &closed, &closed);
    let record = |full: bool| SessionRecord {
        session_id: session(),
        owner_id: owner(),
        ttl_ms: 1,
        created_at: at(),
        expires_at: at(),
        remaining_ms: 1,
        lock_count: 0,
        labels: labels(),
        renewals: 0,
        missed: 0,
        last_error: full.then(String::new),
        max_gap_ms: 0,
    };
    check("SessionRecord", &record(true), &record(false));
    let page = SessionsPage { sessions: vec![], next_cursor: None };
    check("SessionsPage", &page, &page);
}

#[test]
fn elections() {
    let full = CampaignRequest {
        owner_id: Some(owner()),
        ttl_ms: Some(1),
        ttl_seconds: Some(1),
        wait_ms: Some(1),
        value: Some("v".into()),
        session_id: Some(session()),
        lease_id: Some(lease()),
    };
    check("CampaignRequest", &full, &CampaignRequest::default());
    let proclaim = ProclaimRequest { lease_id: lease(), value: "v".into() };
    check("ProclaimRequest", &proclaim, &proclaim);
    let resign = |to| ResignRequest { lease_id: lease(), to };
    check("ResignRequest", &resign(Some(owner())), &resign(None));
    let elected = |full: bool| ElectedAnswer {
        elected: Yes,
        resource: resource(),
        owner_id: owner(),
        lease_id: lease(),
        fencing_token: token(),
        signed_token: full.then(String::new),
        ttl_ms: 1,
        expires_at: at(),
        created_at: at(),
        mode: Mode::Exclusive,
        class: Class::Correctness,
        guarantee: Guarantee::LeaseOnly,
        session_id: full.then(session),
        warning: full.then(String::new),
    };
    check("ElectedAnswer", &elected(true), &elected(false));
    let not_elected = |full: bool| NotElectedAnswer {
        elected: No,
        resource: resource(),
        holders: vec![holder(false)],
        waiters: 0,
        earliest_regrant_at: full.then(at),
    };
    check("NotElectedAnswer", &not_elected(true), &not_elected(false));
    let leader = Leader { owner_id: owner(), fencing_token: token(), value: None, elected_at: at() };
    check("Leader", &leader, &leader);
    let election = ElectionAnswer { name: "n".into(), leader: None, candidates: vec![owner()] };
    check("ElectionAnswer", &election, &election);
    let proclaimed = ProclaimAnswer { proclaimed: Yes, name: "n".into(), fencing_token: token() };
    check("ProclaimAnswer", &proclaimed, &proclaimed);
    let resigned = ResignAnswer { resigned: Yes, name: "n".into(), fencing_token: token() };
    check("ResignAnswer", &resigned, &resigned);
    let vacant = |fencing_token| VacantEvent { fencing_token };
    check("VacantEvent", &vacant(Some(token())), &vacant(None));
}

#[test]
fn answers_about_the_rest() {
    let entry = AuditRecord {
        seq: 1,
        action: "RECOVER".into(),
        resource: None,
        tenant: String::new(),
        actor_id: String::new(),
        identity: None,
        reason: String::new(),
        fencing_token: None,
        fencing_tokens: vec![],
        created_at: at(),
        prev_hash: String::new(),
        hash: String::new(),
    };
    check("AuditRecord", &entry, &entry);
    let page = AuditPage { entries: vec![], next_after: None };
    check("AuditPage", &page, &page);
    let verified = AuditVerifyAnswer { intact: true, entries: 0, first_bad: None, head: String::new() };
    check("AuditVerifyAnswer", &verified, &verified);
    let event = |full: bool| LockEvent {
        event: LockEventKind::Expired,
        resource: resource(),
        owner_id: owner(),
        fencing_token: full.then(token),
        mode: Mode::Exclusive,
        permit: full.then_some(Permit(0)),
        ttl_ms: 1,
        reason: full.then_some(EndReason::Expired),
        max_hold: full,
        at: at(),
    };
    check("LockEvent", &event(true), &event(false));
    let compacted = CompactedEvent { oldest: None };
    check("CompactedEvent", &compacted, &compacted);
    let node = NodeSeen {
        node: "n".into(),
        role: Role::Active,
        address: None,
        version: None,
        known_format: 1,
        lag: 0,
        last_seen_ms: 0,
    };
    check("NodeSeen", &node, &node);
    let request = UpgradeFinishRequest { actor_id: "op".into(), reason: "r".into() };
    check("UpgradeFinishRequest", &request, &request);
    let request = NoteBackupRequest { actor_id: "op".into(), reason: "r".into() };
    check("NoteBackupRequest", &request, &request);
    let noted = NoteBackupAnswer { audit_seq: 1, cluster_id: ClusterId::from_bytes([7; 16]) };
    check("NoteBackupAnswer", &noted, &noted);
    let older_nodes = vec![node.clone()];
    let finished = UpgradeFinishAnswer { finished: true, format: 2, before: 1, older_nodes };
    check("UpgradeFinishAnswer", &finished, &finished);
    let status = StatusAnswer {
        cluster_id: ClusterId::from_bytes([7; 16]),
        generation: 0,
        node: "n".into(),
        role: Role::Active,
        epoch: 1,
        journal: "embedded".into(),
        durability: Durability::Durable,
        version: "0".into(),
        active_address: None,
        nodes: vec![node],
        stalled: false,
        room: true,
        locks_held: 0,
        sessions_open: 0,
        waiters: 0,
        last_token: 0,
        slot: 0,
        lag: 0,
        format: 1,
        known_format: 1,
    };
    check("StatusAnswer", &status, &status);
    let least = Problem::new(ErrorCode::BadRequest, "d");
    let full = Problem {
        reason: Some(EndReason::Expired),
        fencing_token: Some(token()),
        current_tokens: Some(vec![1]),
        ..least.clone()
    };
    check("Problem", &full, &least);
}

#[test]
fn closed_lists_of_words_are_the_same() {
    fn words<T: Copy>(all: &[T], text: impl Fn(T) -> &'static str) -> Value {
        json!(all.iter().map(|&word| text(word)).collect::<Vec<_>>())
    }
    assert_eq!(schema("Mode")["enum"], words(Mode::ALL, Mode::as_str));
    assert_eq!(schema("Class")["enum"], words(Class::ALL, Class::as_str));
    assert_eq!(schema("Guarantee")["enum"], words(Guarantee::ALL, Guarantee::as_str));
    assert_eq!(schema("EndReason")["enum"], words(EndReason::ALL, EndReason::as_str));
    assert_eq!(schema("Problem")["properties"]["code"]["enum"], words(ErrorCode::ALL, ErrorCode::as_str));
    let durability = &schema("StatusAnswer")["properties"]["durability"]["enum"];
    assert_eq!(*durability, words(Durability::ALL, Durability::as_str));
}

#[test]
fn requests_are_closed_and_references_lead_somewhere() {
    let document = document();
    for name in
        document["components"]["schemas"].as_object().unwrap().keys().filter(|name| name.ends_with("Request"))
    {
        assert_eq!(schema(name)["additionalProperties"], false, "{name}");
    }
    let mut pending = vec![&document];
    while let Some(value) = pending.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("within the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => pending.extend(fields.values()),
            _ => {}
        }
    }
}

#[test]
fn whole_numbers_may_be_written_as_floats() {
    let read = |ttl: &str| {
        let body = format!(r#"{{"resource":"a","ttlMs":{ttl}}}"#);
        serde_json::from_str::<AcquireRequest>(&body).map(|request| request.ttl_ms)
    };
    assert_eq!(read("15e3").unwrap(), Some(15_000));
    assert_eq!(read("15000.0").unwrap(), Some(15_000));
    assert_eq!(read("2251799813685247.0").unwrap(), Some(2_251_799_813_685_247));
    for wrong in ["1.5", "-1", "-1.0", "1e300", "null", "\"1\"", "true", "[1]"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn bounds_are_the_default_ones() {
    use leasehold_types::limits;
    let document = document();
    let at = |pointer: &str| {
        let value = document.pointer(&format!("/components/schemas/{pointer}")).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("no bound at {pointer}"))
    };
    for (pointer, bound) in [
        ("ResourceName/maxLength", limits::NAME_BYTES as u64),
        ("OwnerId/maxLength", limits::OWNER_BYTES as u64),
        ("FencingToken/maximum", limits::TOKEN_MAX),
        ("Labels/maxProperties", limits::LABELS as u64),
        ("Labels/propertyNames/maxLength", limits::LABEL_BYTES as u64),
        ("Labels/additionalProperties/maxLength", limits::LABEL_BYTES as u64),
        ("AcquireRequest/properties/ttlMs/minimum", limits::TTL_MIN_MS),
        ("AcquireRequest/properties/ttlMs/maximum", limits::TTL_MAX_MS),
        ("AcquireRequest/properties/ttlSeconds/maximum", limits::TTL_MAX_MS / 1_000),
        ("AcquireRequest/properties/waitMs/maximum", limits::WAIT_MAX_MS),
        ("AcquireRequest/properties/limit/maximum", limits::SEMAPHORE_LIMIT.into()),
        ("AcquireRequest/properties/lockDelayMs/maximum", limits::LOCK_DELAY_MAX_MS),
        ("AcquireRequest/properties/maxHoldMs/maximum", limits::MAX_HOLD_MAX_MS),
        ("ElectionValue/maxLength", limits::VALUE_BYTES as u64),
        ("RenewRequest/properties/lastError/maxLength", limits::ERROR_TEXT_BYTES as u64),
        ("RenewRequest/properties/maxGapMs/maximum", limits::TOKEN_MAX),
        ("ForceReleaseRequest/properties/reason/maxLength", limits::REASON_BYTES as u64),
        ("NotGrantedAnswer/properties/holders/maxItems", limits::HOLDERS_SHOWN as u64),
        ("ExplainAnswer/properties/endings/maxItems", limits::ENDINGS_PER_RESOURCE as u64),
    ] {
        assert_eq!(at(pointer), bound, "{pointer}");
    }
}
