//! TLS to the engine, with rustls: the server's certificate and name are always checked.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::config::{InvalidConfig, TlsFiles};

/// Makes TLS streams for the driver; without files it is never asked to.
#[derive(Clone)]
pub(crate) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Reads the files.
    pub(crate) fn new(files: Option<&TlsFiles>) -> Result<Self, InvalidConfig> {
        files.map(client_config).transpose().map(|config| Self(config.map(Arc::new)))
    }
}

fn client_config(files: &TlsFiles) -> Result<ClientConfig, InvalidConfig> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| InvalidConfig(error.to_string()))?
        .with_root_certificates(roots(files.roots.as_deref())?);
    let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(builder.with_no_client_auth());
    };
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
    builder
        .with_client_auth_cert(certificates(certificate)?, key_der)
        .map_err(|error| unreadable(certificate, &error))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, InvalidConfig> {
    let mut store = RootCertStore::empty();
    let found = match file {
        Some(file) => certificates(file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    store.add_parsable_certificates(found);
    if store.is_empty() {
        return Err(InvalidConfig("no certificate to trust: give `sslrootcert`".to_owned()));
    }
    Ok(store)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, InvalidConfig> {
    let parsed = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, &error))?;
    parsed.collect::<Result<_, _>>().map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> InvalidConfig {
    InvalidConfig(format!("{}: {error}", file.display()))
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    /// Is asked for every connection, also for one without TLS: then the handshake is not made.
    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        Ok(Handshake { config: self.0.clone(), domain: domain.to_owned() })
    }
}

/// One handshake to be made.
pub(crate) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    domain: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let config = self.config.ok_or_else(|| io::Error::other("TLS is not configured"))?;
            let name = ServerName::try_from(self.domain).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, stream).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

/// A TLS stream as the driver wants it.
pub(crate) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
