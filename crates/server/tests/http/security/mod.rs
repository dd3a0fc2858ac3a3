//! A protected server: who is let in, what they may do, what they see of others.

mod cluster;
mod hostile_page;
mod limits;
mod matrix;
mod rotation;
mod streams;
mod tenants;
mod tls;

use leasehold_server::RawConfig;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestServer};

/// A server that lets in whoever has a credential.
pub(crate) struct Protected {
    pub(crate) server: TestServer,
    pub(crate) admin: String,
}

impl Protected {
    pub(crate) async fn start() -> Self {
        Self::with(RawConfig::default()).await
    }

    pub(crate) async fn with(raw: RawConfig) -> Self {
        let server = TestServer::with(RawConfig { auth: Some(true), ..raw }).await;
        let admin = std::fs::read_to_string(server.data.path().join("admin-credential")).unwrap();
        Self { server, admin: admin.trim().to_owned() }
    }

    /// The secret of a new credential.
    pub(crate) async fn credential(&self, principal: &str, tenant: &str, role: &str) -> String {
        let body = json!({"principal": principal, "tenant": tenant, "role": role});
        let created = self.create(body).await;
        created["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn create(&self, body: Value) -> Value {
        let answer = self.as_caller(&self.admin).post("/v1/credentials", body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) async fn revoke(&self, secret: &str) -> Answer {
        let id = secret.split('_').nth(1).unwrap();
        self.as_caller(&self.admin).delete(&format!("/v1/credentials/{id}")).await
    }

    pub(crate) fn as_caller<'a>(&'a self, secret: &'a str) -> Caller<'a> {
        Caller { server: &self.server, secret }
    }
}

/// Asks with a credential, on a connection of its own each time.
pub(crate) struct Caller<'a> {
    server: &'a TestServer,
    secret: &'a str,
}

impl Caller<'_> {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    /// The grant of a resource.
    pub(crate) async fn acquire(&self, resource: &str) -> Value {
        let answer = self.post("/v1/locks/acquire", json!({"resource": resource, "ownerId": "w"})).await;
        assert_eq!(answer.json()["acquired"], true, "{answer:?}");
        answer.json()
    }

    /// Of a stream only the head is read.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        ask(self.server, Some(&format!("Bearer {}", self.secret)), method, path, body).await
    }
}

/// Asks with this header, or with none.
pub(crate) async fn ask(
    server: &TestServer,
    authorization: Option<&str>,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Answer {
    let mut headers = Vec::new();
    if let Some(value) = authorization {
        headers.push(("authorization", value));
    }
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    if !body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    Client::connect(server.server.address()).await.send(method, path, &headers, body.as_bytes()).await
}

#[tokio::test]
async fn the_first_credential_is_in_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt;
    let protected = Protected::start().await;
    let file = protected.server.data.path().join("admin-credential");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = protected.as_caller(&protected.admin).get("/v1/credentials").await.json();
    assert_eq!(listed["credentials"][0]["role"], "admin");
    assert!(!listed.to_string().contains(&protected.admin[20..]), "a list shows no secret");
    // Restarted on the same journal, it makes no second one.
    let journal = protected.server.journal.clone();
    protected.server.server.shutdown().await.unwrap();
    let again = TestServer::on(journal, RawConfig { auth: Some(true), ..RawConfig::default() }).await;
    assert!(!again.data.path().join("admin-credential").exists());
    let bearer = format!("Bearer {}", protected.admin);
    assert_eq!(ask(&again, Some(&bearer), "GET", "/v1/status", None).await.status, 200);
}

#[tokio::test]
async fn a_revoked_credential_is_refused_as_soon_as_that_is_answered() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "default", "client").await;
    // On one connection, so that nothing remembered of it outlives the revocation.
    let mut connection = protected.server.connect().await;
    let bearer = format!("Bearer {web}");
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(connection.send("GET", "/v1/locks", &headers, b"").await.status, 200);
    assert_eq!(protected.revoke(&web).await.status, 200);
    connection.send("GET", "/v1/locks", &headers, b"").await.problem(401, "unauthenticated");
    protected.revoke(&web).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_retried_creation_makes_no_second_credential() {
    let protected = Protected::start().await;
    let bearer = format!("Bearer {}", protected.admin);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "k")];
    let body = json!({"principal": "web", "role": "client"}).to_string();
    let mut connection = protected.server.connect().await;
    let send = async |connection: &mut Client| {
        connection.send("POST", "/v1/credentials", &headers, body.as_bytes()).await
    };
    assert_eq!(send(&mut connection).await.status, 200);
    send(&mut connection).await.problem(422, "idempotency_mismatch");
}

#[tokio::test]
async fn every_change_of_a_credential_is_audited_with_who_made_it() {
    let protected = Protected::start().await;
    let web = protected.credential("web", "default", "client").await;
    protected.revoke(&web).await;
    let admin = protected.as_caller(&protected.admin);
    let entries = admin.get("/v1/audit").await.json()["entries"].as_array().unwrap().clone();
    let of = |n: usize| (entries[n]["action"].as_str().unwrap(), entries[n]["identity"].as_str());
    let last = entries.len() - 1;
    assert_eq!(of(last), ("CREDENTIAL_REVOKE", Some("admin")));
    assert_eq!(of(last - 1), ("CREDENTIAL_CREATE", Some("admin")));
    assert_eq!(of(last - 2), ("CREDENTIAL_CREATE", None), "the first one is nobody's");
    assert_eq!(admin.get("/v1/audit/verify").await.json()["intact"], true);
    assert!(
        !entries.iter().any(|entry| entry.to_string().contains(&web[20..])),
        "no secret in the audit log"
    );
}
