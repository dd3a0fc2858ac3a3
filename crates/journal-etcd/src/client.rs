//! Calls to one member of etcd, each made once: no retries, no balancing.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::uri::PathAndQuery;
use leasehold_journal::remote::{in_words, is_of_certificates};
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::config::{EtcdConfig, InvalidConfig, TlsFiles};
use crate::proto::{
    AuthenticateRequest, AuthenticateResponse, CompactionRequest, CompactionResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse,
};

/// Largest answer: as many slots as one read gives, each at the limit, and some room.
const ANSWER_BYTES: usize = 80 << 20;

/// Why a call did not give its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// etcd has certainly not done it: this user may not, or is none, or etcd does not know the call; or one end does not
    /// trust the other's certificate.
    NotAllowed(String),
    /// etcd has certainly not done it: the request is larger than it takes.
    TooLarge(String),
    /// The revision that was asked for is gone.
    Compacted,
    /// Nobody knows whether it was done.
    Unknown(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compacted => f.write_str("the revision was compacted"),
            Self::NotAllowed(text) | Self::TooLarge(text) | Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// The only place where etcd's answers of failure are judged. What is not certainly refused is unknown.
fn judge(status: &Status) -> Trouble {
    // A status that was made here has its cause within, which begins with the same words.
    let cause = std::error::Error::source(status).map(in_words);
    let text = format!("{} ({:?})", cause.as_deref().unwrap_or(status.message()), status.code());
    match status.code() {
        Code::InvalidArgument | Code::FailedPrecondition if is_of_users(status.message()) => {
            Trouble::NotAllowed(text)
        }
        Code::PermissionDenied | Code::Unimplemented => Trouble::NotAllowed(text),
        Code::InvalidArgument if status.message().contains("too large") => Trouble::TooLarge(text),
        Code::OutOfRange if status.message().contains("compacted") => Trouble::Compacted,
        _ => unreached(text),
    }
}

/// What a connection met that gave no answer.
fn unreached(words: String) -> Trouble {
    if is_of_certificates(&words) { Trouble::NotAllowed(words) } else { Trouble::Unknown(words) }
}

/// Whether etcd does not know this user, wants one, or has none at all. An outdated credential is another matter: the next
/// connection has a new one.
fn is_of_users(message: &str) -> bool {
    ["invalid user ID or password", "user name is empty", "authentication is not enabled"]
        .iter()
        .any(|words| message.contains(words))
}

/// Makes clients, each of the next member.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) config: Arc<EtcdConfig>,
    endpoints: Arc<[Endpoint]>,
    next: Arc<AtomicUsize>,
}

impl Connector {
    pub(crate) fn new(config: EtcdConfig) -> Result<Self, InvalidConfig> {
        let tls = config.tls.as_ref().map(tls_config).transpose()?;
        let endpoints = config.endpoints.iter().map(|url| endpoint(url, tls.as_ref(), &config));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?.into();
        Ok(Self { config: Arc::new(config), endpoints, next: Arc::default() })
    }

    /// Connects to the first member that lets us, beginning after the one that was last given up.
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let first = self.next.load(Ordering::Relaxed);
        let mut last = Trouble::Unknown("there is no member".to_owned());
        for index in first..first + self.endpoints.len() {
            match self.connect_to(&self.endpoints[index % self.endpoints.len()]).await {
                Ok(client) => {
                    self.next.store(index, Ordering::Relaxed);
                    return Ok(client);
                }
                Err(trouble) => last = trouble,
            }
        }
        Err(last)
    }

    /// Lets the next connection begin with another member: this one did not answer.
    pub(crate) fn turn(&self) {
        self.next.fetch_add(1, Ordering::Relaxed);
    }

    async fn connect_to(&self, endpoint: &Endpoint) -> Result<Client, Trouble> {
        let connecting = tokio::time::timeout(self.config.call_within, endpoint.connect());
        let channel = match connecting.await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => {
                return Err(unreached(format!("{}: {}", endpoint.uri(), in_words(&error))));
            }
            Err(_) => return Err(Trouble::Unknown(format!("{}: no connection in time", endpoint.uri()))),
        };
        let mut client = Client { channel, credential: None, within: self.config.call_within };
        if let Some((name, password)) = &self.config.user {
            let (name, password) = (name.clone(), password.clone());
            let path = PathAndQuery::from_static("/etcdserverpb.Auth/Authenticate");
            let answer: AuthenticateResponse =
                client.call(path, AuthenticateRequest { name, password }).await?;
            client.credential = answer.token.parse().ok();
        }
        Ok(client)
    }
}

fn endpoint(
    url: &str,
    tls: Option<&ClientTlsConfig>,
    config: &EtcdConfig,
) -> Result<Endpoint, InvalidConfig> {
    let wrong = |_| InvalidConfig(format!("`{url}` is not an address"));
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(wrong)?;
    let endpoint = endpoint.connect_timeout(config.call_within).tcp_nodelay(true).user_agent("leasehold");
    let endpoint = endpoint.map_err(|error| InvalidConfig(error.to_string()))?;
    match tls {
        Some(tls) => endpoint.tls_config(tls.clone()).map_err(|error| InvalidConfig(in_words(&error))),
        None => Ok(endpoint),
    }
}

fn tls_config(files: &TlsFiles) -> Result<ClientTlsConfig, InvalidConfig> {
    let read = |file: &std::path::Path| {
        std::fs::read(file).map_err(|error| InvalidConfig(format!("{}: {error}", file.display())))
    };
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &files.ca {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca)?));
    }
    if let (Some(cert), Some(key)) = (&files.cert, &files.key) {
        tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    Ok(tls)
}

/// A connection to one member. Given up after any unknown outcome.
#[derive(Clone)]
pub(crate) struct Client {
    channel: Channel,
    credential: Option<MetadataValue<Ascii>>,
    within: std::time::Duration,
}

impl Client {
    async fn call<A, B>(&self, path: PathAndQuery, message: A) -> Result<B, Trouble>
    where
        A: prost::Message + 'static,
        B: prost::Message + Default + 'static,
    {
        let mut request = Request::new(message);
        if let Some(credential) = &self.credential {
            request.metadata_mut().insert("authorization", credential.clone());
        }
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES);
        let call = async {
            grpc.ready().await.map_err(|error| Trouble::Unknown(in_words(&error)))?;
            let answer = grpc.unary(request, path, ProstCodec::<A, B>::default()).await;
            answer.map(tonic::Response::into_inner).map_err(|status| judge(&status))
        };
        timed(self.within, call).await
    }

    /// One transaction. One that could write goes through etcd's log, whichever branch it takes; one that only reads is
    /// a quorum read. Both are linearizable.
    pub(crate) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Trouble> {
        self.call(PathAndQuery::from_static("/etcdserverpb.KV/Txn"), request).await
    }

    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Trouble> {
        self.call(PathAndQuery::from_static("/etcdserverpb.KV/Range"), request).await
    }

    pub(crate) async fn compact(&self, revision: i64) -> Result<CompactionResponse, Trouble> {
        let request = CompactionRequest { revision };
        self.call(PathAndQuery::from_static("/etcdserverpb.KV/Compact"), request).await
    }

    pub(crate) async fn status(&self) -> Result<StatusResponse, Trouble> {
        self.call(PathAndQuery::from_static("/etcdserverpb.Maintenance/Status"), StatusRequest {}).await
    }
}

/// Waits so long and no longer. What was given up may still be done: unknown.
async fn timed<T>(
    within: std::time::Duration,
    call: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(within, call).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Trouble::Unknown(format!("no answer within {} ms", within.as_millis()))),
    }
}
