//! Connections to the other nodes, in the clear or over TLS as their URLs say.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tower_service::Service;

use super::{TlsError, provider, roots};
use crate::config::TlsFiles;

/// Connects to a node.
#[derive(Clone)]
pub(crate) struct PeerConnector {
    tcp: HttpConnector,
    /// Absent where this node has no certificates either.
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for PeerConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerConnector").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl PeerConnector {
    /// Connects over `tcp`, to nodes with certificates of the authorities that the files name, speaking `protocol`.
    ///
    /// # Errors
    /// The authorities cannot be read.
    pub(crate) fn new(
        mut tcp: HttpConnector,
        files: Option<&TlsFiles>,
        protocol: &[u8],
    ) -> Result<Self, TlsError> {
        tcp.enforce_http(false);
        let tls = files.map(|files| client_config(files, protocol)).transpose()?;
        Ok(Self { tcp, tls: tls.map(|config| TlsConnector::from(Arc::new(config))) })
    }
}

fn client_config(files: &TlsFiles, protocol: &[u8]) -> Result<ClientConfig, TlsError> {
    let path = files.peer_ca.as_ref().or(files.client_ca.as_ref()).unwrap_or(&files.cert);
    let pem = std::fs::read(path).map_err(|error| TlsError::new(path, error))?;
    let trusted = roots(path, &pem)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::new(path, error))?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

impl Service<Uri> for PeerConnector {
    type Response = TokioIo<PeerStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.tcp.poll_ready(cx).map_err(io::Error::other)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = (uri.scheme_str() == Some("https")).then(|| self.tls.clone());
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            let socket = connecting.await.map_err(io::Error::other)?.into_inner();
            let Some(tls) = tls else { return Ok(TokioIo::new(PeerStream::Clear(socket))) };
            let tls = tls.ok_or_else(|| io::Error::other("no authorities are known here for other nodes"))?;
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = tls.connect(name, socket).await?;
            Ok(TokioIo::new(PeerStream::Tls(Box::new(stream))))
        })
    }
}

/// A connection to a node.
pub(crate) enum PeerStream {
    /// In the clear.
    Clear(TcpStream),
    /// Over TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for PeerStream {
    fn connected(&self) -> Connected {
        match self {
            Self::Clear(_) => Connected::new(),
            Self::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            Self::Tls(_) => Connected::new(),
        }
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
