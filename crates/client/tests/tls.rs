//! TLS and credentials, against a listener that ends TLS in front of a server, and one that writes down what it is sent.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{AcquireError, Client, Security};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A certificate authority and what it signed, as PEM.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certificate and key.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// Ends TLS, and passes on what is inside.
async fn tls_in_front_of(target: SocketAddr, authority: &Authority, clients: Option<&Authority>) -> String {
    let (certificate, key) = authority.issue("localhost");
    let builder = match clients {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(clients) => {
            let mut trusted = RootCertStore::empty();
            trusted.add(CertificateDer::from_pem_slice(clients.pem().as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(trusted)).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let mut config =
        builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut inside) = acceptor.accept(socket).await else { return };
                let Ok(mut server) = TcpStream::connect(target).await else { return };
                drop(copy_bidirectional(&mut inside, &mut server).await);
            });
        }
    });
    url
}

fn client(url: &str, security: Security) -> Client {
    Client::builder().endpoint(url).security(security).build().unwrap()
}

async fn is_refused(url: &str, security: Security) {
    let client = Client::builder().endpoint(url).security(security).patience(Duration::from_millis(500));
    let client = client.build().unwrap();
    let error = client.acquire("a").no_wait().await.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_server_that_is_trusted_is_spoken_to() {
    let server = TestServer::start().await;
    let (authority, other) = (Authority::new(), Authority::new());
    let url = tls_in_front_of(server.address(), &authority, None).await;
    let guard = client(&url, Security::new().ca_pem(authority.pem())).acquire("a").await.unwrap();
    guard.release().await.unwrap();
    is_refused(&url, Security::new().ca_pem(other.pem())).await;
    is_refused(&url, Security::new()).await;
    let wrong_name = url.replace("localhost", "127.0.0.1");
    is_refused(&wrong_name, Security::new().ca_pem(authority.pem())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_shown_and_a_renewed_one_is_taken_up() {
    let server = TestServer::start().await;
    let (authority, clients) = (Authority::new(), Authority::new());
    let url = tls_in_front_of(server.address(), &authority, Some(&clients)).await;
    let trusting = || Security::new().ca_pem(authority.pem());
    is_refused(&url, trusting()).await;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("certificate"), folder.path().join("key"));
    let write = |(pem, secret): (String, String)| {
        std::fs::write(&certificate, pem).unwrap();
        std::fs::write(&key, secret).unwrap();
    };
    write(Authority::new().issue("me"));
    let showing = || trusting().identity_files(&certificate, &key);
    let client = client(&url, showing());
    is_refused(&url, showing()).await;
    let acquire = client.acquire("a");
    drop(tokio::time::timeout(Duration::from_millis(50), acquire.clone().into_future()).await);
    write(clients.issue("me"));
    acquire.await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_goes_with_every_call_and_a_new_one_is_taken_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(write_down(listener, Arc::clone(&seen)));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "first\n").unwrap();
    let client = client(&url, Security::new().credential_file(file.path()));
    let moment = Duration::from_millis(50);
    let until = async |what: &str, path: &str| {
        let told = (path.to_owned(), format!("Bearer {what}"));
        while !seen.lock().unwrap().contains(&told) {
            // Both would go on asking as long as they have patience.
            drop(tokio::time::timeout(moment, client.election("jobs").standing()).await);
            drop(tokio::time::timeout(moment, client.acquire("a").into_future()).await);
        }
    };
    let both = async |what: &str| {
        until(what, "/leasehold.v1.Locks/GetElection").await;
        until(what, "/leasehold.v1.Locks/Session").await;
    };
    tokio::time::timeout(Duration::from_secs(60), both("first")).await.expect("both are asked");
    std::fs::write(&file, "second\n").unwrap();
    tokio::time::timeout(Duration::from_secs(60), both("second")).await.expect("the new one is used");
    assert!(seen.lock().unwrap().iter().all(|(_, credential)| credential.starts_with("Bearer ")));
}

/// Notes path and credential of every call, and refuses it.
async fn write_down(listener: TcpListener, seen: Arc<Mutex<Vec<(String, String)>>>) {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    while let Ok((socket, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        let note = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let header =
                request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
            seen.lock().unwrap().push((request.uri().path().to_owned(), header.unwrap_or_default()));
            let status = tonic::Status::unavailable("only writes down").into_http::<tonic::body::Body>();
            std::future::ready(Ok::<_, std::convert::Infallible>(status))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(socket), note);
        tokio::spawn(async move { drop(connection.await) });
    }
}
