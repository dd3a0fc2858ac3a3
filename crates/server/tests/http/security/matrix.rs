//! F17: every operation of the OpenAPI document against every kind of caller that must not get through. An operation that
//! has no row here fails the test.

use leasehold_api::OPENAPI;
use serde_json::{Value, json};

use super::{Protected, ask};
use crate::support::Answer;

/// What an operation is, for the matrix.
struct Row {
    /// Who may; empty: everybody, signed in or not.
    roles: &'static [&'static str],
    body: Option<Value>,
    /// Whether it names a lease or a session by its id, which another principal must not reach.
    by_id: bool,
}

const EVERYBODY: &[&str] = &[];
const SIGNED_IN: &[&str] = &["client", "observer", "operator", "admin"];
const TAKE: &[&str] = &["client", "operator", "admin"];
const LOOK: &[&str] = &["observer", "operator", "admin"];
const OPERATE: &[&str] = &["operator", "admin"];
const ADMINISTER: &[&str] = &["admin"];

fn row(operation: &str, lease: &str) -> Row {
    let plain = |roles, body| Row { roles, body, by_id: false };
    let by_id = |roles, body| Row { roles, body, by_id: true };
    match operation {
        "acquireLock" => plain(TAKE, Some(json!({"resource": "free", "ownerId": "w"}))),
        "renewLock" | "renewSession" => by_id(TAKE, Some(json!({}))),
        "releaseLock" | "closeSession" => by_id(TAKE, None),
        "showLock" | "showSession" => by_id(SIGNED_IN, None),
        "listLocks" | "explainResource" | "showElection" | "observeElection" | "watchEvents" => {
            plain(SIGNED_IN, None)
        }
        "validateToken" => plain(SIGNED_IN, Some(json!({"resource": "held", "fencingToken": 1}))),
        "forceRelease" => plain(OPERATE, Some(json!({"actorId": "a", "reason": "r", "all": true}))),
        "reportFence" => plain(OPERATE, Some(json!({"prefix": "p/", "enforces": true}))),
        "openSession" => plain(TAKE, Some(json!({"ownerId": "w"}))),
        "listFences" | "listSessions" | "listAudit" | "verifyAudit" | "showMetrics" => plain(LOOK, None),
        "campaign" => plain(TAKE, Some(json!({"ownerId": "w", "ttlMs": 5000}))),
        "proclaim" => by_id(TAKE, Some(json!({"leaseId": lease, "value": "v"}))),
        "resign" => by_id(TAKE, Some(json!({"leaseId": lease}))),
        "showStatus" | "showIdentity" => plain(SIGNED_IN, None),
        "upgradeFinish" | "noteBackup" => plain(ADMINISTER, Some(json!({"actorId": "a", "reason": "r"}))),
        "listCredentials" => plain(ADMINISTER, None),
        "createCredential" => plain(ADMINISTER, Some(json!({"principal": "new", "role": "client"}))),
        "revokeCredential" => plain(ADMINISTER, None),
        "isAlive" | "isReady" | "showOpenApi" | "showPage" => plain(EVERYBODY, None),
        other => panic!("{other} has no row in the auth matrix"),
    }
}

struct Operation {
    id: String,
    method: String,
    path: String,
}

fn operations(lease: &str, session: &str) -> Vec<Operation> {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{leaseId}", lease)
            .replace("{sessionId}", session)
            .replace("{resource}", "held")
            .replace("{name}", "race")
            .replace("{credentialId}", "0123456789abcdef");
        assert!(!path.contains('{'), "{path} has a part that the matrix does not know");
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().expect("an operation has an id").to_owned();
            operations.push(Operation { id, method: method.to_uppercase(), path: path.clone() });
        }
    }
    assert!(operations.len() >= 32, "{} operations", operations.len());
    operations
}

async fn send(
    protected: &Protected,
    authorization: Option<&str>,
    operation: &Operation,
    row: &Row,
) -> Answer {
    let (method, path) = (&operation.method, &operation.path);
    ask(&protected.server, authorization, method, path, row.body.clone()).await
}

/// A lease of a leader, and an open session, both of the principal `web` of the tenant `acme`.
async fn held(protected: &Protected, secret: &str) -> (String, String) {
    let web = protected.as_caller(secret);
    let lease = web.acquire("election/race").await["leaseId"].as_str().unwrap().to_owned();
    let session = web.post("/v1/sessions", json!({"ownerId": "w", "ttlMs": 60_000})).await.json();
    (lease, session["sessionId"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn without_a_credential_that_counts_nothing_opens() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "acme", "client").await;
    let (lease, session) = held(&protected, &web).await;
    let expired = json!({"principal": "web", "tenant": "acme", "role": "admin", "expiresInSeconds": 1});
    let expired = protected.create(expired).await["secret"].as_str().unwrap().to_owned();
    let revoked = protected.credential("web", "acme", "admin").await;
    assert_eq!(protected.revoke(&revoked).await.status, 200);
    // The id of a real credential with another secret.
    let forged = format!("{}{}", &web[..web.len() - 4], if web.ends_with("0000") { "1111" } else { "0000" });
    let until_expired = tokio::time::Duration::from_millis(1_100);
    tokio::time::sleep(until_expired).await;
    let shown = [
        None,
        Some("Bearer nonsense".to_owned()),
        Some("Bearer ".to_owned()),
        Some(format!("Basic {web}")),
        Some(web.clone()),
        Some(format!("Bearer {forged}")),
        Some(format!("Bearer {expired}")),
        Some(format!("Bearer {revoked}")),
    ];
    for operation in operations(&lease, &session) {
        let row = row(&operation.id, &lease);
        for shown in &shown {
            let answer = send(&protected, shown.as_deref(), &operation, &row).await;
            match row.roles.is_empty() {
                true => assert_eq!(answer.status, 200, "{} {shown:?}", operation.id),
                false => {
                    assert_eq!(answer.status, 401, "{} {shown:?}", operation.id);
                    answer.problem(401, "unauthenticated");
                }
            }
        }
    }
    assert!(is_held(&protected, &web, &lease).await);
}

async fn is_held(protected: &Protected, secret: &str, lease: &str) -> bool {
    protected.as_caller(secret).get(&format!("/v1/locks/{lease}")).await.status == 200
}

#[tokio::test]
async fn each_role_may_do_what_it_is_for_and_nothing_else() {
    let protected = Protected::start().await;
    for role in SIGNED_IN {
        let web = protected.credential("web", "acme", "client").await;
        let (lease, session) = held(&protected, &web).await;
        // The same principal, so that only the role is in the way.
        let secret = format!("Bearer {}", protected.credential("web", "acme", role).await);
        for operation in operations(&lease, &session) {
            let row = row(&operation.id, &lease);
            let answer = send(&protected, Some(&secret), &operation, &row).await;
            let allowed = row.roles.is_empty() || row.roles.contains(role);
            match allowed {
                true => assert!(!matches!(answer.status, 401 | 403), "{role} {}: {answer:?}", operation.id),
                false => {
                    answer.problem(403, "forbidden");
                }
            }
        }
        // What an allowed caller has freed meanwhile is freed for the next round as well.
        protected.as_caller(&web).delete(&format!("/v1/locks/{lease}")).await;
        protected.as_caller(&web).delete(&format!("/v1/sessions/{session}")).await;
        let operator = protected.credential("op", "acme", "operator").await;
        let free = json!({"actorId": "a", "reason": "next round", "all": true});
        for name in ["free", "election%2Frace"] {
            let path = format!("/v1/resources/{name}/force-release");
            assert_eq!(protected.as_caller(&operator).post(&path, free.clone()).await.status, 200);
        }
    }
}

#[tokio::test]
async fn the_ids_of_another_principal_or_tenant_are_as_good_as_unknown() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "acme", "client").await;
    let (lease, session) = held(&protected, &web).await;
    let strangers = [
        protected.credential("batch", "acme", "client").await,
        protected.credential("web", "other", "client").await,
        protected.credential("web", "other", "operator").await,
    ];
    let unheard_of = "00000000-0000-4000-8000-000000000000";
    for secret in &strangers {
        let secret = format!("Bearer {secret}");
        for operation in operations(&lease, &session) {
            let row = row(&operation.id, &lease);
            if !row.by_id {
                continue;
            }
            let answer = send(&protected, Some(&secret), &operation, &row).await;
            assert!(matches!(answer.status, 404 | 410), "{}: {answer:?}", operation.id);
            // Word for word what is said of an id that nobody ever had.
            let unknown =
                operations(unheard_of, unheard_of).into_iter().find(|other| other.id == operation.id);
            let unknown_row = self::row(&operation.id, unheard_of);
            let expected = send(&protected, Some(&secret), &unknown.unwrap(), &unknown_row).await;
            assert_eq!(
                (answer.status, answer.text()),
                (expected.status, expected.text()),
                "{}",
                operation.id
            );
        }
    }
    assert!(is_held(&protected, &web, &lease).await);
    let path = format!("/v1/sessions/{session}");
    assert_eq!(protected.as_caller(&web).get(&path).await.status, 200, "the session lives");
}

#[tokio::test]
async fn scopes_narrow_names_and_verbs() {
    let protected = Protected::start().await;
    let body =
        json!({"principal": "web", "role": "operator", "scopes": ["acquire,read:orders/", "read:public/"]});
    let secret = protected.create(body).await["secret"].as_str().unwrap().to_owned();
    let web = protected.as_caller(&secret);
    web.acquire("orders/1").await;
    let other = json!({"resource": "billing/1", "ownerId": "w"});
    web.post("/v1/locks/acquire", other).await.problem(403, "forbidden");
    let public = json!({"resource": "public/1", "ownerId": "w"});
    web.post("/v1/locks/acquire", public).await.problem(403, "forbidden");
    assert_eq!(web.get("/v1/locks?prefix=orders/").await.status, 200);
    assert_eq!(web.get("/v1/resources/public%2F1").await.status, 200);
    for path in ["/v1/locks", "/v1/locks?prefix=ord", "/v1/resources/billing%2F1", "/v1/sessions", "/metrics"]
    {
        web.get(path).await.problem(403, "forbidden");
    }
    web.get("/v1/events?prefix=billing/").await.problem(403, "forbidden");
    let free = json!({"actorId": "a", "reason": "r", "all": true});
    web.post("/v1/resources/orders%2F1/force-release", free).await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_key_means_another_command_for_another_principal() {
    let protected = Protected::start().await;
    let (web, batch) = (
        protected.credential("web", "acme", "client").await,
        protected.credential("batch", "acme", "client").await,
    );
    let body = json!({"resource": "a", "ownerId": "w", "ttlMs": 30_000}).to_string();
    let mut granted = Vec::new();
    for secret in [&web, &batch] {
        let bearer = format!("Bearer {secret}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", "same"),
        ];
        let mut connection = protected.server.connect().await;
        let answer = connection.send("POST", "/v1/locks/acquire", &headers, body.as_bytes()).await;
        granted.push(answer.json()["acquired"].clone());
    }
    assert_eq!(granted, [true, false], "the second principal is told of a holder, not handed its lease");
}
