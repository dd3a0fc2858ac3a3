//! etcd: its own Lock service. The revision of a lock's key is its token.

use anyhow::Context as _;
use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use super::{Locker, Wait};

/// Clients of one process share connections; eight are more than one core can fill.
const CHANNELS: usize = 8;
const TTL_SECONDS: i64 = 60;

#[derive(Clone, PartialEq, prost::Message)]
struct LockRequest {
    #[prost(bytes = "bytes", tag = "1")]
    name: Bytes,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LockResponse {
    #[prost(bytes = "bytes", tag = "2")]
    key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnlockRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnlockResponse {}

#[derive(Clone, PartialEq, prost::Message)]
struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeepAliveRequest {
    #[prost(int64, tag = "1")]
    id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeepAliveResponse {
    #[prost(int64, tag = "3")]
    ttl: i64,
}

/// One client with a lease of its own.
pub(crate) struct EtcdLocker {
    channel: Channel,
    lease: i64,
    keep_alive: Option<KeepAlive>,
}

struct KeepAlive {
    requests: mpsc::Sender<KeepAliveRequest>,
    answers: Streaming<KeepAliveResponse>,
}

impl EtcdLocker {
    /// Clients over a few connections, spread over the members.
    pub(crate) async fn connect(endpoints: &[String], count: usize) -> anyhow::Result<Vec<Self>> {
        let mut channels = Vec::new();
        for url in endpoints.iter().cycle().take(CHANNELS.min(count)) {
            channels.push(Endpoint::from_shared(url.clone())?.tcp_nodelay(true).connect().await?);
        }
        let mut lockers = Vec::with_capacity(count);
        for channel in channels.iter().cycle().take(count) {
            let request = LeaseGrantRequest { ttl: TTL_SECONDS };
            let granted: LeaseGrantResponse =
                unary(channel, "/etcdserverpb.Lease/LeaseGrant", request).await?;
            lockers.push(Self { channel: channel.clone(), lease: granted.id, keep_alive: None });
        }
        Ok(lockers)
    }

    async fn open_keep_alive(&self) -> anyhow::Result<KeepAlive> {
        let (requests, stream) = mpsc::channel(1);
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseKeepAlive");
        let codec = ProstCodec::<KeepAliveRequest, KeepAliveResponse>::default();
        let stream = Request::new(Requests(stream));
        requests.send(KeepAliveRequest { id: self.lease }).await?;
        let mut answers = grpc.streaming(stream, path, codec).await?.into_inner();
        answers.message().await?.context("etcd answers a keep-alive")?;
        Ok(KeepAlive { requests, answers })
    }
}

/// The requests of a stream.
struct Requests(mpsc::Receiver<KeepAliveRequest>);

impl futures_util::Stream for Requests {
    type Item = KeepAliveRequest;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<KeepAliveRequest>> {
        self.0.poll_recv(cx)
    }
}

async fn unary<A, B>(channel: &Channel, path: &'static str, request: A) -> anyhow::Result<B>
where
    A: prost::Message + 'static,
    B: prost::Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let codec = ProstCodec::<A, B>::default();
    Ok(grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?.into_inner())
}

impl Locker for EtcdLocker {
    type Held = Bytes;

    async fn acquire(&mut self, name: &str, _: Wait) -> anyhow::Result<Option<Bytes>> {
        let request = LockRequest { name: Bytes::copy_from_slice(name.as_bytes()), lease: self.lease };
        let held: LockResponse = unary(&self.channel, "/v3lockpb.Lock/Lock", request).await?;
        Ok(Some(held.key))
    }

    async fn release(&mut self, key: Bytes) -> anyhow::Result<()> {
        let _: UnlockResponse = unary(&self.channel, "/v3lockpb.Lock/Unlock", UnlockRequest { key }).await?;
        Ok(())
    }

    async fn renew(&mut self, _: &Bytes) -> anyhow::Result<()> {
        let mut stream = match self.keep_alive.take() {
            Some(stream) => stream,
            None => self.open_keep_alive().await?,
        };
        stream.requests.send(KeepAliveRequest { id: self.lease }).await?;
        let answer = stream.answers.message().await?.context("etcd answers a keep-alive")?;
        anyhow::ensure!(answer.ttl > 0, "the lease has ended");
        self.keep_alive = Some(stream);
        Ok(())
    }
}
