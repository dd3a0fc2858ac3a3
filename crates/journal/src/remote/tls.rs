//! TLS to an engine, with rustls: its certificate and name are always checked. Every error is one in words, the operator's to mend.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, crypto};

pub use tokio_rustls::rustls::ClientConfig;

/// Trusts these certificates, and shows our own, of which the files are given, to whoever asks for one: first the certificate, then the key.
///
/// # Errors
/// A file cannot be read or is none of its kind, or nobody is trusted.
pub fn client_config(
    trusted: Vec<CertificateDer<'static>>,
    ours: Option<(&Path, &Path)>,
) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    if roots.is_empty() {
        return Err("there is no certificate to trust".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let Some((certificate, key)) = ours else { return Ok(builder.with_no_client_auth()) };
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
    builder
        .with_client_auth_cert(certificates(certificate)?, key_der)
        .map_err(|error| unusable(certificate, &error))
}

/// The certificates in a file.
///
/// # Errors
/// It cannot be read, or is no such file.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let parsed = CertificateDer::pem_file_iter(file).map_err(|error| unusable(file, &error))?;
    parsed.collect::<Result<_, _>>().map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}
