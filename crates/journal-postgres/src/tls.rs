//! TLS to the engine, with rustls: the server's certificate and name are always checked.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use leasehold_journal::remote::tls::{self, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{InvalidConfig, TlsFiles};

/// Makes TLS streams for the driver; without files it is never asked to.
#[derive(Clone)]
pub(crate) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Reads the files.
    pub(crate) fn new(files: Option<&TlsFiles>) -> Result<Self, InvalidConfig> {
        let config = files.map(client_config).transpose().map_err(InvalidConfig)?;
        Ok(Self(config.map(Arc::new)))
    }
}

fn client_config(files: &TlsFiles) -> Result<ClientConfig, String> {
    let trusted = match files.roots.as_deref() {
        Some(file) => tls::certificates(file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    if trusted.is_empty() {
        return Err("no certificate to trust: give `sslrootcert`".to_owned());
    }
    tls::client_config(trusted, files.certificate.as_deref().zip(files.key.as_deref()))
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
