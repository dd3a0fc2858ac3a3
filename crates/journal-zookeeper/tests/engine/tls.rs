//! TLS to the engine: only to the one whose certificate is trusted. The engine's end of it is made here, in front of a
//! ZooKeeper that speaks plainly.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use leasehold_journal::{Journal as _, OpenError};
use leasehold_testbed::zookeeper;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::kit::{Node, claim, journal};

/// Takes TLS on a port of its own and passes what is inside on to `plain`: the port, with the certificate in `file`.
async fn terminator(plain: SocketAddr, name: &str, file: &Path) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(file, certificate.pem()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()));
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut near) = acceptor.accept(socket).await else { return };
                let mut far = TcpStream::connect(plain).await.unwrap();
                let _ = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_trusted_engine_is_used() {
    let server = zookeeper();
    let dir = tempfile::tempdir().unwrap();
    let (trusted, other) = (dir.path().join("trusted.crt"), dir.path().join("other.crt"));
    let port = terminator(server.addresses()[0], "localhost", &trusted).await;
    let elsewhere = terminator(server.addresses()[0], "elsewhere.test", &other).await;
    let url = |port: u16, ca: &Path| format!("zookeeper://localhost:{port}?tls_ca={}", ca.display());

    let mut node = Node::open(&journal(&url(port, &trusted))).await;
    node.commit("encrypted").await;
    node.commit("again").await;
    let refused = [
        ("an unknown authority", url(port, &other)),
        ("another name", url(elsewhere, &other)),
        ("no TLS at all", url(server.addresses()[0].port(), &trusted)),
    ];
    for (what, url) in refused {
        let opened = journal(&url).open(claim()).await;
        assert!(matches!(opened, Err(OpenError::Unavailable(_))), "{what}: {opened:?}");
    }
}
