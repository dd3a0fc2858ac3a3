//! etcd: the fence in the same transaction as the user's own operations.
//!
//! What the fence keeps stands under a key of its own; a write is one etcd transaction that compares the revision of
//! that key, puts what follows from the verdict, and carries out the user's operations. A rival's write in between
//! changes the revision, and everything is decided again.
//!
//! Guarantee: atomic, across any number of keys, and across fail-over of etcd itself: reads are linearizable, commits
//! are on a majority. A transaction whose answer was lost is sent again, the same one, and then looked up.

mod wire;

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use wire::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, Request, RequestOp, Target,
    TxnRequest, TxnResponse,
};

use crate::cas::{self, CasFence, CompareAndSet};
use crate::{Ask, Fence, Grant};

/// What can come of asking the fence.
pub type Error = cas::Error<Status>;

/// What a fenced write does, besides moving the fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Puts a value under a key.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
}

impl Operation {
    /// Puts a value under a key.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self::Put { key: key.into(), value: value.into() }
    }

    /// Deletes a key.
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self::Delete { key: key.into() }
    }
}

/// A fence whose rows are kept under `prefix` + name of the fence.
#[derive(Clone, Debug)]
pub struct EtcdFence {
    channel: Channel,
    prefix: String,
}

impl EtcdFence {
    /// A fence over this channel, which carries endpoints, time-out and TLS. The prefix belongs to fences alone.
    pub fn new(channel: Channel, prefix: &str) -> Self {
        Self { channel, prefix: prefix.to_owned() }
    }

    /// Carries out the operations, if the fence admits the write, in one transaction with the check. etcd takes 128
    /// operations in a transaction by default; one is ours.
    ///
    /// If the future is dropped, the outcome is unknown.
    ///
    /// # Errors
    /// Rejected: stop the work. Store: see [`cas::CasError`].
    pub async fn write<'ask>(
        &self,
        fence: &Fence,
        ask: impl Into<Option<&'ask Ask>>,
        operations: Vec<Operation>,
    ) -> Result<(), Error> {
        CasFence::new(self.carrying(operations)).update(fence, ask, |_| Vec::new()).await
    }

    /// Raises the maximum before the first read, so that no older holder can write between that read and the write that
    /// follows from it. Can be repeated.
    ///
    /// # Errors
    /// Rejected: the lease is lost. Store: try again.
    pub async fn claim(&self, fence: &Fence, grant: &Grant) -> Result<(), Error> {
        CasFence::new(self.carrying(Vec::new())).claim(fence, grant).await
    }

    /// The fence for a single value that is kept together with the fence's rows, under their key.
    pub fn values(&self) -> CasFence<impl CompareAndSet<Error = Status> + '_> {
        CasFence::new(self.carrying(Vec::new()))
    }

    fn carrying(&self, operations: Vec<Operation>) -> Carrying<'_> {
        Carrying { fence: self, operations: operations.into_iter().map(Into::into).collect() }
    }

    async fn call<A, B>(&self, path: &'static str, request: A) -> Result<B, Status>
    where
        A: prost::Message + 'static,
        B: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Status::new(Code::Unavailable, error.to_string()))?;
        let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::<A, B>::default());
        Ok(grpc.unary(tonic::Request::new(request), path, codec).await?.into_inner())
    }
}

/// The store of the fence's rows, whose puts carry out other operations too.
struct Carrying<'a> {
    fence: &'a EtcdFence,
    operations: Vec<RequestOp>,
}

impl CompareAndSet for Carrying<'_> {
    type Version = i64;
    type Error = Status;

    async fn read(&self, key: &str) -> Result<Option<(Vec<u8>, i64)>, Status> {
        let key = format!("{}{key}", self.fence.prefix).into_bytes();
        let answer: RangeResponse = self.fence.call("/etcdserverpb.KV/Range", RangeRequest { key }).await?;
        Ok(answer.kvs.into_iter().next().map(|kv| (kv.value, kv.mod_revision)))
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&i64>) -> Result<bool, Status> {
        let key = format!("{}{key}", self.fence.prefix).into_bytes();
        // Revision 0 is that of a key which is not there.
        let revision = Target::ModRevision(version.copied().unwrap_or(0));
        let unchanged = Compare { target: wire::MOD, key: key.clone(), value: Some(revision) };
        let ours = RequestOp::from(Operation::put(key, value));
        let success = std::iter::once(ours).chain(self.operations.iter().cloned()).collect();
        let request = TxnRequest { compare: vec![unchanged], success };
        let answer: TxnResponse = self.fence.call("/etcdserverpb.KV/Txn", request).await?;
        Ok(answer.succeeded)
    }
}

impl From<Operation> for RequestOp {
    fn from(operation: Operation) -> Self {
        let request = match operation {
            Operation::Put { key, value } => Request::Put(PutRequest { key, value }),
            Operation::Delete { key } => Request::DeleteRange(DeleteRangeRequest { key }),
        };
        Self { request: Some(request) }
    }
}
