//! One session with the engine.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use zookeeper_client::{Acls, CreateMode, Error, MultiReadResult, MultiWriteError, MultiWriteResult};

use crate::config::ZookeeperConfig;
use crate::paths::Paths;
use crate::tunnel::Tunnels;

/// How long ZooKeeper keeps a silent session. Nothing of ours hangs on it.
const SESSION: Duration = Duration::from_secs(6);
/// A session that is not there by then is tried again later.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Why a call did not give its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// ZooKeeper has certainly not done it: this user may not.
    NotAllowed(String),
    /// Nobody knows whether it was done.
    Unknown(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAllowed(text) | Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// The only place where the driver's errors are judged. What is not certainly refused is unknown, above all a lost
/// connection.
fn judge(error: &Error) -> Trouble {
    match error {
        Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => Trouble::NotAllowed(error.to_string()),
        other => Trouble::Unknown(other.to_string()),
    }
}

/// One operation of a multi.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The node is there, and nobody has changed it since it was made.
    CheckNew(String),
    Create(String, Bytes),
    /// Sets the data if the version is this one; `None`: whatever it is.
    Set(String, Bytes, Option<i32>),
    Delete(String),
}

/// What came of a multi.
#[derive(Debug)]
pub(crate) enum Multi {
    /// Everything was done; the versions of the nodes that were set, in order.
    Done(Vec<i32>),
    /// Nothing was done, since the operation at this place does not fit what is there.
    Refused(usize),
}

/// Makes sessions.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) config: Arc<ZookeeperConfig>,
    pub(crate) paths: Paths,
}

impl Connector {
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let mut connector = zookeeper_client::Client::connector()
            .with_session_timeout(SESSION)
            .with_connection_timeout(self.config.call_within)
            .with_fail_eagerly();
        if let Some((user, password)) = &self.config.user {
            connector = connector.with_auth("digest", format!("{user}:{password}").as_bytes());
        }
        let tunnels = match &self.config.tls {
            Some(tls) => Some(Tunnels::open(&self.config.hosts, tls).await.map_err(not_opened)?),
            None => None,
        };
        let hosts = tunnels.as_ref().map_or(&self.config.hosts, |tunnels| &tunnels.hosts);
        let session = timed(CONNECT_WITHIN, connector.connect(hosts)).await.map_err(|trouble| {
            let mistrust = tunnels.as_ref().and_then(Tunnels::mistrust);
            mistrust.map_or(trouble, |words| Trouble::NotAllowed(words.to_owned()))
        })?;
        let acls = if self.config.user.is_some() { Acls::creator_all() } else { Acls::anyone_all() };
        Ok(Client { session, acls, within: self.config.call_within, _tunnels: tunnels.map(Arc::new) })
    }
}

/// A session. Given up after any unknown outcome; ends when the last copy is dropped.
#[derive(Clone)]
pub(crate) struct Client {
    session: zookeeper_client::Client,
    acls: Acls<'static>,
    within: Duration,
    /// Dropped after the session that goes through them.
    _tunnels: Option<Arc<Tunnels>>,
}

impl Client {
    /// Does all or nothing.
    pub(crate) async fn multi(&self, ops: Vec<Op>) -> Result<Multi, Trouble> {
        let mut writer = self.session.new_multi_writer();
        let options = CreateMode::Persistent.with_acls(self.acls);
        for op in &ops {
            let added = match op {
                Op::CheckNew(path) => writer.add_check_version(path, 0),
                Op::Create(path, data) => writer.add_create(path, data, &options),
                Op::Set(path, data, version) => writer.add_set_data(path, data, *version),
                Op::Delete(path) => writer.add_delete(path, None),
            };
            added.map_err(|error| judge(&error))?;
        }
        match tokio::time::timeout(self.within, writer.commit()).await {
            Ok(Ok(results)) => Ok(Multi::Done(results.iter().filter_map(version_of).collect())),
            Ok(Err(MultiWriteError::OperationFailed { index, source })) if is_refusal(&source) => {
                Ok(Multi::Refused(index))
            }
            Ok(Err(
                MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source },
            )) => Err(judge(&source)),
            Err(_) => Err(too_late(self.within)),
        }
    }

    /// The data and versions of several nodes, read by one request.
    pub(crate) async fn read(&self, paths: &[&str]) -> Result<Vec<Option<(Bytes, i32)>>, Trouble> {
        let mut reader = self.session.new_multi_reader();
        for path in paths {
            reader.add_get_data(path).map_err(|error| judge(&error))?;
        }
        let results = timed(self.within, reader.commit()).await?;
        results.into_iter().map(data_of).collect()
    }

    /// Makes the server that we talk to catch up with its leader.
    pub(crate) async fn sync(&self) -> Result<(), Trouble> {
        timed(self.within, self.session.sync("/")).await
    }

    /// The names of a node's children; none if there is no such node.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, Trouble> {
        match tokio::time::timeout(self.within, self.session.list_children(path)).await {
            Ok(Ok(names)) => Ok(names),
            Ok(Err(Error::NoNode)) => Ok(Vec::new()),
            Ok(Err(error)) => Err(judge(&error)),
            Err(_) => Err(too_late(self.within)),
        }
    }

    /// Makes a node that others may have made already.
    pub(crate) async fn ensure(&self, path: &str) -> Result<(), Trouble> {
        let options = CreateMode::Persistent.with_acls(self.acls);
        match tokio::time::timeout(self.within, self.session.create(path, &[], &options)).await {
            Ok(Ok(_) | Err(Error::NodeExists)) => Ok(()),
            Ok(Err(error)) => Err(judge(&error)),
            Err(_) => Err(too_late(self.within)),
        }
    }

    /// Removes a node and everything below it, the deepest first.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), Trouble> {
        let mut found = vec![path.to_owned()];
        let mut next = 0;
        while next < found.len() {
            let children = self.children(&found[next]).await?;
            let below: Vec<_> =
                children.into_iter().map(|child| format!("{}/{child}", found[next])).collect();
            found.extend(below);
            next += 1;
        }
        for path in found.into_iter().rev() {
            self.multi(vec![Op::Delete(path)]).await?;
        }
        Ok(())
    }
}

fn not_opened(error: std::io::Error) -> Trouble {
    Trouble::Unknown(format!("the way to ZooKeeper cannot be made: {error}"))
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::BadVersion | Error::NoNode | Error::NodeExists | Error::NotEmpty)
}

fn version_of(result: &MultiWriteResult) -> Option<i32> {
    match result {
        MultiWriteResult::SetData { stat } => Some(stat.version),
        _ => None,
    }
}

fn data_of(result: MultiReadResult) -> Result<Option<(Bytes, i32)>, Trouble> {
    match result {
        MultiReadResult::Data { data, stat } => Ok(Some((Bytes::from(data), stat.version))),
        MultiReadResult::Error { err: Error::NoNode } => Ok(None),
        MultiReadResult::Error { err } => Err(judge(&err)),
        _ => Err(Trouble::Unknown("an answer to another question".to_owned())),
    }
}

fn too_late(within: Duration) -> Trouble {
    Trouble::Unknown(format!("no answer within {} ms", within.as_millis()))
}

/// Waits so long and no longer. What was given up may still be done: unknown.
async fn timed<T>(within: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
    match tokio::time::timeout(within, call).await {
        Ok(outcome) => outcome.map_err(|error| judge(&error)),
        Err(_) => Err(too_late(within)),
    }
}
