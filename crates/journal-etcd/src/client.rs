//! Calls to one member of etcd, each made once: no retries, no balancing.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderValue, Uri};
use leasehold_journal::remote::is_of_certificates;
use leasehold_journal::remote::tls::{self, ClientConfig};
use prost::Message;
use tonic::Code;

use crate::config::{EtcdConfig, InvalidConfig, TlsFiles};
use crate::grpc::{ALPN, Address, Connection, Failure};
use crate::proto::{
    AuthenticateRequest, AuthenticateResponse, CompactionRequest, CompactionResponse, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse,
};

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
fn judge(failure: Failure) -> Trouble {
    let status = match failure {
        Failure::Status(status) => status,
        Failure::Unreached(words) => return unreached(words),
    };
    let text = format!("{} ({:?})", status.message(), status.code());
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
    members: Arc<[Address]>,
    next: Arc<AtomicUsize>,
}

impl Connector {
    pub(crate) fn new(config: EtcdConfig) -> Result<Self, InvalidConfig> {
        let tls = config.tls.as_ref().map(tls_config).transpose()?;
        let members = config.endpoints.iter().map(|url| address(url, tls.as_ref()));
        let members = members.collect::<Result<Vec<_>, _>>()?.into();
        Ok(Self { config: Arc::new(config), members, next: Arc::default() })
    }

    /// Connects to the first member that lets us, beginning after the one that was last given up.
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let first = self.next.load(Ordering::Relaxed);
        let mut last = Trouble::Unknown("there is no member".to_owned());
        for index in first..first + self.members.len() {
            match self.connect_to(&self.members[index % self.members.len()]).await {
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

    async fn connect_to(&self, member: &Address) -> Result<Client, Trouble> {
        let within = self.config.call_within;
        let connection = match tokio::time::timeout(within, Connection::open(member)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(Failure::Status(status))) => return Err(judge(Failure::Status(status))),
            Ok(Err(Failure::Unreached(words))) => return Err(unreached(format!("{}: {words}", member.uri))),
            Err(_) => return Err(Trouble::Unknown(format!("{}: no connection in time", member.uri))),
        };
        let mut client = Client { connection, credential: None, within };
        if let Some((name, password)) = &self.config.user {
            let (name, password) = (name.clone(), password.clone());
            let answer: AuthenticateResponse = client
                .call("/etcdserverpb.Auth/Authenticate", &AuthenticateRequest { name, password })
                .await?;
            client.credential = answer.token.parse().ok();
        }
        Ok(client)
    }
}

fn address(url: &str, tls: Option<&Arc<ClientConfig>>) -> Result<Address, InvalidConfig> {
    let wrong = |_| InvalidConfig(format!("`{url}` is not an address"));
    Ok(Address { uri: url.parse::<Uri>().map_err(wrong)?, tls: tls.cloned() })
}

fn tls_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, InvalidConfig> {
    let roots =
        files.ca.as_deref().map_or_else(|| Ok(Vec::new()), tls::certificates).map_err(InvalidConfig)?;
    let ours = files.cert.as_deref().zip(files.key.as_deref());
    let mut config = tls::client_config(roots, ours).map_err(InvalidConfig)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// A connection to one member. Given up after any unknown outcome.
#[derive(Clone)]
pub(crate) struct Client {
    connection: Connection,
    credential: Option<HeaderValue>,
    within: std::time::Duration,
}

impl Client {
    async fn call<A: Message, B: Message + Default>(&self, path: &str, message: &A) -> Result<B, Trouble> {
        let call = self.connection.call(path, self.credential.as_ref(), message);
        timed(self.within, async { call.await.map_err(judge) }).await
    }

    /// One transaction. One that could write goes through etcd's log, whichever branch it takes; one that only reads is
    /// a quorum read. Both are linearizable.
    pub(crate) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Trouble> {
        self.call("/etcdserverpb.KV/Txn", &request).await
    }

    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Trouble> {
        self.call("/etcdserverpb.KV/Range", &request).await
    }

    pub(crate) async fn compact(&self, revision: i64) -> Result<CompactionResponse, Trouble> {
        let request = CompactionRequest { revision };
        self.call("/etcdserverpb.KV/Compact", &request).await
    }

    pub(crate) async fn status(&self) -> Result<StatusResponse, Trouble> {
        self.call("/etcdserverpb.Maintenance/Status", &StatusRequest {}).await
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
