//! Two protected nodes over TLS: what one passes on to the other carries who asks, by credential and by certificate.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use leasehold_node::Role;
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, RawJournal, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::tls::{Authority, connector, grpc, list_locks};
use crate::support::PATIENCE;

/// A protected node with a certificate.
struct Node {
    server: Server,
    data: tempfile::TempDir,
}

impl Node {
    async fn start(name: &str, journal: &str, settings: RawConfig) -> Self {
        let data = tempfile::tempdir().unwrap();
        let raw = RawConfig {
            listen: Some("127.0.0.1:0".into()),
            data: Some(data.path().to_owned()),
            node: Some(name.into()),
            journal: Some(RawJournal::from_url(journal).unwrap()),
            auth: Some(true),
            ..settings
        };
        let config = raw.resolve().unwrap();
        let components = Components::new(&config, LogSink::none());
        let server = Server::start(config, components).await.unwrap();
        Self { server, data }
    }

    fn is_active(&self) -> bool {
        self.server.handle().status().role == Role::Active
    }
}

/// Asks on a connection of its own; the status and the body.
async fn ask(
    address: SocketAddr,
    connector: &TlsConnector,
    bearer: Option<&str>,
    request: (&str, &str, Value),
) -> (u16, Value) {
    let (method, path, body) = request;
    let asked = async {
        let socket = TcpStream::connect(address).await?;
        let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        if let Some(bearer) = bearer {
            head.push_str(&format!("authorization: Bearer {bearer}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        let mut answer = Vec::new();
        // A server that closes without a goodbye of TLS has still said everything.
        drop(stream.read_to_end(&mut answer).await);
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let text = tokio::time::timeout(PATIENCE, asked).await.expect("an answer").unwrap_or_default();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let reached = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn first_credential(node: &Node) -> String {
    let file: &Path = &node.data.path().join("admin-credential");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_passes_on_who_asks_over_tls() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let engine = leasehold_testbed::etcd();
    let journal = engine.url().replace("http://", "etcd://");
    let active = Node::start("first", &journal, authority.settings(folder.path())).await;
    assert!(active.is_active(), "whoever founds a journal serves at once");
    let admin = first_credential(&active);
    let standby = Node::start("second", &journal, authority.settings(folder.path())).await;
    let there = standby.server.address();
    let plain = connector(&authority, None);
    let nothing = || Value::Null;
    until("the standby reaches the active node", async || {
        ask(there, &plain, None, ("GET", "/readyz", nothing())).await.0 == 200
    })
    .await;
    assert!(!standby.is_active());

    // A credential is checked by the node that decides.
    let acquire = json!({"resource": "a", "ownerId": "w", "ttlMs": 60_000});
    let (status, grant) =
        ask(there, &plain, Some(&admin), ("POST", "/v1/locks/acquire", acquire.clone())).await;
    assert_eq!((status, &grant["acquired"]), (200, &json!(true)), "{grant}");
    for wrong in [None, Some("lh_0000000000000000_nonsense")] {
        let refused = ask(there, &plain, wrong, ("POST", "/v1/locks/acquire", acquire.clone())).await;
        assert_eq!(refused.0, 401, "{}", refused.1);
    }

    // A certificate is seen by the standby alone, which vouches for it.
    let billing =
        connector(&authority, Some(&authority.issue("billing.example", Some("spiffe://acme/billing"))));
    assert_eq!(
        ask(there, &billing, None, ("GET", "/v1/identity", nothing())).await.0,
        401,
        "nobody knows it yet"
    );
    let create = json!({"principal": "billing", "role": "client", "san": "spiffe://acme/billing"});
    let created = ask(there, &plain, Some(&admin), ("POST", "/v1/credentials", create)).await;
    assert_eq!(created.0, 200, "{}", created.1);
    // The standby learns of it as it follows the journal.
    until("the certificate is known", async || {
        ask(there, &billing, None, ("GET", "/v1/identity", nothing())).await.0 == 200
    })
    .await;
    let (_, identity) = ask(there, &billing, None, ("GET", "/v1/identity", nothing())).await;
    assert_eq!((&identity["name"], &identity["role"]), (&json!("billing"), &json!("client")), "{identity}");
    let own = json!({"resource": "b", "ownerId": "w", "ttlMs": 60_000});
    let (_, own) = ask(there, &billing, None, ("POST", "/v1/locks/acquire", own)).await;
    let own = format!("/v1/locks/{}/renew", own["leaseId"].as_str().unwrap());
    let held = format!("/v1/locks/{}/renew", grant["leaseId"].as_str().unwrap());
    let foreign = ask(there, &billing, None, ("POST", &held, json!({}))).await;
    assert!(matches!(foreign.0, 403 | 404 | 410), "another's lease: {foreign:?}");

    // And after a hand-over the same callers go on with the same leases.
    active.server.shutdown().await.unwrap();
    until("the standby serves", async || standby.is_active()).await;
    until("it renews for both", async || {
        ask(there, &plain, Some(&admin), ("POST", &held, json!({}))).await.0 == 200
            && ask(there, &billing, None, ("POST", &own, json!({}))).await.0 == 200
    })
    .await;
}

/// The first of them move to the loop's thread after their handshake, the others stay with the workers.
#[tokio::test(flavor = "multi_thread")]
async fn grpc_over_tls_is_served_beside_the_loop_and_elsewhere() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let engine = leasehold_testbed::etcd();
    let journal = engine.url().replace("http://", "etcd://");
    let node = Node::start("only", &journal, authority.settings(folder.path())).await;
    let (admin, port) = (first_credential(&node), node.server.address().port());
    let free = || std::iter::from_fn(|| node.server.handle().beside_the_loop()).collect::<Vec<_>>();
    let all = free().len();
    let (mut clients, mut taken) = (Vec::new(), Vec::new());
    for number in 1..=4 {
        let mut client = grpc(&authority, port).await;
        client.list_locks(list_locks(&admin)).await.unwrap();
        clients.push(client);
        if number == 2 {
            taken = free();
            assert_eq!(taken.len(), all - 2, "they have moved");
        }
    }
    assert!(free().is_empty(), "every place is taken");
    for client in &mut clients {
        client.list_locks(list_locks(&admin)).await.unwrap();
        assert!(client.list_locks(list_locks("nonsense")).await.is_err());
    }
    drop((clients, taken));
    until("every place is free again", async || free().len() == all).await;
    let mut client = grpc(&authority, port).await;
    client.list_locks(list_locks(&admin)).await.unwrap();
    node.server.shutdown().await.unwrap();
    assert!(client.list_locks(list_locks(&admin)).await.is_err());
}
