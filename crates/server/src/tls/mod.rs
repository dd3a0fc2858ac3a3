//! TLS: the server's own certificate, those of its callers, and those of the other nodes.
//!
//! Certificates are read again when their files change and on SIGHUP. A connection keeps what it began with, so that no
//! lease is lost to a new certificate; files that cannot be used leave the old ones in place.

mod peers;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection};
use tracing::{info, warn};

use crate::config::TlsFiles;

pub(crate) use peers::PeerConnector;

/// How often the files are looked at: as soon as anybody could be waiting for a new certificate.
const LOOK: Duration = Duration::from_secs(2);

/// Files that cannot be used as certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {detail}")]
pub(crate) struct TlsError {
    file: String,
    detail: String,
}

impl TlsError {
    fn new(file: &std::path::Path, detail: impl std::fmt::Display) -> Self {
        Self { file: file.display().to_string(), detail: detail.to_string() }
    }
}

/// The certificates as they are now.
pub(crate) struct Tls {
    files: TlsFiles,
    present: RwLock<Present>,
}

struct Present {
    config: Arc<ServerConfig>,
    /// Hash of the files that it was made of.
    made_of: blake3::Hash,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or is not what it should be; the message names it.
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = Contents::read(&files)?;
        let present = Present { config: contents.server_config(&files)?, made_of: contents.hash() };
        Ok(Self { files, present: RwLock::new(present) })
    }

    /// What shakes hands with a new connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let present = self.present.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&present.config))
    }

    /// Looks at the files again, and says so in the log if they are new, or wrong.
    pub(crate) fn reload(&self) {
        match self.read_again() {
            Ok(true) => info!(event = "certificates_reloaded", "new connections have the new certificates"),
            Ok(false) => {}
            Err(why) => {
                warn!(event = "certificates_not_reloaded", %why, "the old certificates stay in use");
            }
        }
    }

    /// Whether anything was new.
    fn read_again(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files)?;
        let made_of = contents.hash();
        if self.present.read().unwrap_or_else(PoisonError::into_inner).made_of == made_of {
            return Ok(false);
        }
        let config = contents.server_config(&self.files)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = Present { config, made_of };
        Ok(true)
    }

    /// Looks at the files every few seconds, for ever. Cancel-safe.
    pub(crate) async fn follow_files(self: Arc<Self>) {
        let mut told = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let tls = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || tls.read_again()).await;
            match looked {
                Ok(Ok(true)) => {
                    info!(event = "certificates_reloaded", "new connections have the new certificates");
                    told = None;
                }
                // Files are replaced one after the other: what is wrong now may be right with the next look.
                Ok(Err(why)) if told.as_ref() != Some(&why) => {
                    warn!(event = "certificates_not_reloaded", %why, "the old certificates stay in use");
                    told = Some(why);
                }
                Ok(Err(_)) | Ok(Ok(false)) => {}
                Err(_) => return,
            }
        }
    }
}

/// What the files hold.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &std::path::Path| std::fs::read(path).map_err(|error| TlsError::new(path, error));
        Ok(Self {
            cert: read(&files.cert)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for part in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let part = part.map_or(&[][..], Vec::as_slice);
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize()
    }

    fn server_config(&self, files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
        let wrong_cert = |error| TlsError::new(&files.cert, error);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong_cert)?;
        let builder = match (&files.client_ca, &self.client_ca) {
            (Some(path), Some(pem)) => {
                let trusted = Arc::new(roots(path, pem)?);
                // Whoever shows none may still show a bearer secret.
                let verifier = WebPkiClientVerifier::builder_with_provider(trusted, provider())
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| TlsError::new(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let chain = certificates(&files.cert, &self.cert)?;
        let key =
            PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| TlsError::new(&files.key, error))?;
        let mut config = builder.with_single_cert(chain, key).map_err(wrong_cert)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(path: &std::path::Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::new(path, error))?;
    if chain.is_empty() { Err(TlsError::new(path, "there is no certificate in it")) } else { Ok(chain) }
}

fn roots(path: &std::path::Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots.add(certificate).map_err(|error| TlsError::new(path, error))?;
    }
    Ok(roots)
}

/// Whether the client chose HTTP/2.
pub(crate) fn chose_http2(connection: &ServerConnection) -> bool {
    connection.alpn_protocol() == Some(b"h2")
}

/// The alternative names of the certificate that the client has proved to own: its URIs first, then its DNS names.
pub(crate) fn client_names(connection: &ServerConnection) -> Vec<Box<str>> {
    let Some(certificate) = connection.peer_certificates().and_then(<[_]>::first) else { return Vec::new() };
    // It was verified in the handshake; what cannot be read here names nobody.
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    parsed.valid_uri_names().chain(parsed.valid_dns_names()).map(Into::into).collect()
}
