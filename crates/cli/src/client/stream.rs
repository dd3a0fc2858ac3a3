//! A connection to a server, with TLS where its address says so.

use std::sync::Arc;
use std::time::Duration;

use leasehold::Security;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Server;
use crate::failure::Failure;

/// A server that does not even accept a connection in this time is taken for absent.
const CONNECT: Duration = Duration::from_secs(5);

/// Bytes in both directions.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, encrypted or not.
pub(crate) type Stream = Box<dyn Io>;

/// Connects, or says that nobody is there.
pub(crate) async fn connect(server: &Server) -> Result<Stream, Failure> {
    let absent = |error: String| Failure::Unreachable { tried: server.to_string(), error };
    let insecure = |error: String| Failure::Insecure { server: server.to_string(), error };
    let stream = match timeout(CONNECT, TcpStream::connect(server.address())).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(absent(plain(&error))),
        Err(_) => return Err(absent("no connection in time".into())),
    };
    stream.set_nodelay(true).map_err(|error| absent(plain(&error)))?;
    if !server.is_secure() {
        return Ok(Box::new(stream));
    }
    let connector = TlsConnector::from(Arc::new(config(server.security())?));
    let (host, _) = server.address();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| absent(error.to_string()))?;
    match timeout(CONNECT, connector.connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(insecure(error.to_string())),
        Err(_) => Err(insecure("no TLS in time".into())),
    }
}

fn config(security: &Security) -> Result<ClientConfig, Failure> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| Failure::Usage(format!("{what}: {error}"));
    let builder = ClientConfig::builder().with_root_certificates(trusted(security)?);
    let mut config = match security.read_identity().map_err(|error| wrong("--cert, --key", &error))? {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(&certificate).map_err(|error| wrong("--cert", &error))?;
            let key =
                PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| wrong("--key", &error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| wrong("--cert, --key", &error))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The authorities in the file that was named, or else those of this machine.
fn trusted(security: &Security) -> Result<RootCertStore, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("--ca: {error}"));
    let found = match security.read_ca().map_err(|error| wrong(&error))? {
        Some(pem) => certificates(&pem).map_err(|error| wrong(&error))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut trusted = RootCertStore::empty();
    // One that cannot be read is not trusted; the machine's list often has such.
    trusted.add_parsable_certificates(found);
    Ok(trusted)
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err("no certificate in it".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

/// The operating system's words without its number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".into(),
        _ => error.to_string(),
    }
}
