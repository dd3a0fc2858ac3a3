//! TLS on the one port: HTTP/1 and gRPC, client certificates, new certificates without a restart, nodes among themselves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::locks_client::LocksClient;
use leasehold_server::{RawConfig, RawTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use super::Protected;
use crate::support::PATIENCE;

/// A certificate authority.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certificate and key for a DNS name, and a URI if one is given.
    pub(super) fn issue(&self, dns: &str, uri: Option<&str>) -> (String, String) {
        self.issue_for(&[dns], uri)
    }

    /// The same for several names; an address is one too.
    fn issue_for(&self, names: &[&str], uri: Option<&str>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        if let Some(uri) = uri {
            params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        }
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// Puts a fresh certificate for this machine where the server looks for it, one file after the other.
    pub(super) fn renew(&self, folder: &Path) {
        let (certificate, key) = self.issue_for(&["localhost", "127.0.0.1"], None);
        std::fs::write(folder.join("key.pem"), key).unwrap();
        std::fs::write(folder.join("cert.pem"), certificate).unwrap();
    }

    pub(super) fn settings(&self, folder: &Path) -> RawConfig {
        self.renew(folder);
        std::fs::write(folder.join("ca.pem"), self.pem()).unwrap();
        let file = |name: &str| Some(folder.join(name));
        let tls =
            RawTls { cert: file("cert.pem"), key: file("key.pem"), client_ca: file("ca.pem"), peer_ca: None };
        RawConfig { tls, ..RawConfig::default() }
    }
}

/// A client that trusts the authority, and perhaps shows a certificate of it.
pub(super) fn connector(authority: &Authority, certificate: Option<&(String, String)>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// A gRPC client with a connection of its own, that trusts the authority.
pub(super) async fn grpc(authority: &Authority, port: u16) -> LocksClient<Channel> {
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.pem()));
    let endpoint = Endpoint::from_shared(format!("https://localhost:{port}")).unwrap();
    LocksClient::new(endpoint.tls_config(tls).unwrap().connect().await.unwrap())
}

/// Asks for all locks, with this credential.
pub(super) fn list_locks(credential: &str) -> tonic::Request<pb::ListLocksRequest> {
    let mut request = tonic::Request::new(pb::ListLocksRequest::default());
    request.metadata_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
    request
}

async fn connect(protected: &Protected, connector: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(protected.server.server.address()).await?;
    connector.connect(ServerName::try_from("localhost").unwrap(), socket).await
}

/// The first line of the answer.
async fn get(stream: &mut TlsStream<TcpStream>, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let answered = async {
        loop {
            stream.read_buf(&mut read).await.unwrap();
            let text = String::from_utf8_lossy(&read).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    return text.lines().next().unwrap().to_owned();
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("an answer")
}

/// A protected server with certificates; its admin's calls go over TLS too.
async fn start(authority: &Authority, folder: &Path) -> Protected {
    Protected::with(authority.settings(folder)).await
}

/// Creates a credential past HTTP, which these tests are about.
async fn create_san(protected: &Protected, authority: &Authority, san: &str) {
    let mut stream = connect(protected, &connector(authority, None)).await.unwrap();
    let body = json!({"principal": "billing", "role": "client", "san": san}).to_string();
    let request = format!(
        "POST /v1/credentials HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        protected.admin,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = [0; 12];
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"HTTP/1.1 200");
}

#[tokio::test]
async fn http_and_grpc_share_the_port_over_tls() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let protected = start(&authority, folder.path()).await;
    assert!(protected.server.server.url().starts_with("https://"));
    let mut stream = connect(&protected, &connector(&authority, None)).await.unwrap();
    assert_eq!(get(&mut stream, "/healthz", "").await, "HTTP/1.1 200 OK");
    assert_eq!(get(&mut stream, "/v1/locks", "").await, "HTTP/1.1 401 Unauthorized");
    let bearer = format!("authorization: Bearer {}\r\n", protected.admin);
    assert_eq!(get(&mut stream, "/v1/locks", &bearer).await, "HTTP/1.1 200 OK");
    let mut client = grpc(&authority, protected.server.server.address().port()).await;
    let request = list_locks(&protected.admin);
    client.list_locks(request).await.unwrap();
    assert!(client.list_locks(pb::ListLocksRequest::default()).await.is_err());
}

#[tokio::test]
async fn a_client_certificate_is_known_by_its_alternative_name() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let protected = start(&authority, folder.path()).await;
    let known = authority.issue("billing.example", Some("spiffe://acme/billing"));
    let mut stream = connect(&protected, &connector(&authority, Some(&known))).await.unwrap();
    assert_eq!(get(&mut stream, "/v1/locks", "").await, "HTTP/1.1 401 Unauthorized", "nobody knows it yet");
    create_san(&protected, &authority, "spiffe://acme/billing").await;
    assert_eq!(get(&mut stream, "/v1/locks", "").await, "HTTP/1.1 200 OK", "on the same connection");
    assert_eq!(get(&mut stream, "/v1/sessions", "").await, "HTTP/1.1 403 Forbidden");
    let other = authority.issue("other.example", None);
    let mut stream = connect(&protected, &connector(&authority, Some(&other))).await.unwrap();
    assert_eq!(get(&mut stream, "/v1/locks", "").await, "HTTP/1.1 401 Unauthorized");
    // A certificate of somebody else's authority does not come past the handshake.
    let forged = Authority::new().issue("billing.example", Some("spiffe://acme/billing"));
    let refused = async {
        let mut stream = connect(&protected, &connector(&authority, Some(&forged))).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
        stream.read_u8().await
    };
    assert!(refused.await.is_err());
}

#[tokio::test]
async fn new_certificates_are_taken_and_broken_ones_are_not() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let protected = start(&authority, folder.path()).await;
    let connector = connector(&authority, None);
    let mut kept = connect(&protected, &connector).await.unwrap();
    let shown = async || {
        let stream = connect(&protected, &connector).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    };
    let before = shown().await;
    std::fs::write(folder.path().join("cert.pem"), "nonsense").unwrap();
    protected.server.server.reload();
    assert_eq!(shown().await, before, "the old one stays");
    authority.renew(folder.path());
    protected.server.server.reload();
    let after = shown().await;
    assert_ne!(after, before);
    // And without being told to, when the files change.
    authority.renew(folder.path());
    let changed = async {
        while shown().await == after {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), changed).await.expect("it looks at its files");
    assert_eq!(get(&mut kept, "/healthz", "").await, "HTTP/1.1 200 OK", "connections stay");
}

#[tokio::test]
async fn who_does_not_shake_hands_is_not_waited_for() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let protected = start(&authority, folder.path()).await;
    let mut silent = TcpStream::connect(protected.server.server.address()).await.unwrap();
    let mut byte = [0];
    let closed =
        tokio::time::timeout(Duration::from_secs(60), silent.read(&mut byte)).await.expect("in time");
    assert!(matches!(closed, Ok(0) | Err(_)));
    let mut plain = TcpStream::connect(protected.server.server.address()).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), plain.read_to_end(&mut answer)).await;
    drop(ended.expect("in time"));
    assert!(!answer.starts_with(b"HTTP"), "nothing is answered in the clear");
}
