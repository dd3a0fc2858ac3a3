//! Leasehold by its session stream without the client: where renewals are asked for one by one.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::locks_client::LocksClient;
use leasehold_proto::v1::request::Ask;
use leasehold_types::ids::random;
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;
use tonic::transport::Endpoint;

use super::{Connections, Locker, Wait};

/// Longer than any run: nobody keeps these sessions alive.
const TTL_MS: u64 = 3_600_000;
/// The longest wait that a server allows; a turn that hangs is ended by its own limit.
const WAIT_MS: u64 = 600_000;

type Asked = (Ask, oneshot::Sender<Outcome>);

/// One task over a stream that it shares with others.
pub(crate) struct StreamLocker {
    asks: mpsc::UnboundedSender<Asked>,
}

impl StreamLocker {
    /// So many clients, over one stream or over one each.
    pub(crate) async fn connect(
        url: &str,
        connections: Connections,
        count: usize,
    ) -> anyhow::Result<Vec<Self>> {
        let first = Self::open(url).await?;
        let mut lockers = Vec::with_capacity(count);
        for _ in 0..count {
            lockers.push(match connections {
                Connections::One => Self { asks: first.asks.clone() },
                Connections::OneEach => Self::open(url).await?,
            });
        }
        Ok(lockers)
    }

    async fn open(url: &str) -> anyhow::Result<Self> {
        let (asks, queue) = mpsc::unbounded_channel();
        let (frames, outbound) = mpsc::unbounded_channel();
        let mut client =
            LocksClient::new(Endpoint::from_shared(url.to_owned())?.tcp_nodelay(true).connect().await?);
        let key: [u8; 16] = random();
        let open = pb::Open {
            resume_key: key.iter().map(|byte| format!("{byte:02x}")).collect(),
            owner_id: "bench".into(),
            ttl_ms: Some(TTL_MS),
            ..pb::Open::default()
        };
        frames.send(pb::ClientFrame { open: Some(open), ..pb::ClientFrame::default() })?;
        let mut inbound = client.session(Frames(outbound)).await?.into_inner();
        inbound.message().await?.context("a stream begins with its session")?;
        tokio::spawn(talk(queue, frames, inbound));
        Ok(Self { asks })
    }

    async fn ask(&self, ask: Ask) -> anyhow::Result<Outcome> {
        let (answer, outcome) = oneshot::channel();
        self.asks.send((ask, answer)).ok().context("the stream has ended")?;
        outcome.await.context("the stream has ended")
    }
}

/// Sends what waits in one frame, and hands out what is answered.
async fn talk(
    mut queue: mpsc::UnboundedReceiver<Asked>,
    frames: mpsc::UnboundedSender<pb::ClientFrame>,
    mut inbound: Streaming<pb::ServerFrame>,
) {
    let mut waiting = HashMap::new();
    let mut last = 0;
    loop {
        tokio::select! {
            biased;
            frame = inbound.message() => {
                let Ok(Some(frame)) = frame else { return };
                for answer in frame.answers {
                    let asker: Option<oneshot::Sender<Outcome>> = waiting.remove(&answer.id);
                    if let (Some(asker), Some(outcome)) = (asker, answer.outcome) {
                        // Whoever left does not want it.
                        let _ = asker.send(outcome);
                    }
                }
            }
            asked = queue.recv() => {
                let Some(first) = asked else { return };
                let mut requests = Vec::new();
                let mut next = Some(first);
                while let Some((ask, answer)) = next {
                    last += 1;
                    waiting.insert(last, answer);
                    requests.push(pb::Request { id: last, ask: Some(ask) });
                    next = queue.try_recv().ok();
                }
                if frames.send(pb::ClientFrame { requests, ..pb::ClientFrame::default() }).is_err() {
                    return;
                }
            }
        }
    }
}

/// The frames of a stream.
struct Frames(mpsc::UnboundedReceiver<pb::ClientFrame>);

impl futures_util::Stream for Frames {
    type Item = pb::ClientFrame;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<pb::ClientFrame>> {
        self.0.poll_recv(cx)
    }
}

impl Locker for StreamLocker {
    type Held = Bytes;

    async fn acquire(&mut self, name: &str, wait: Wait) -> anyhow::Result<Option<Bytes>> {
        let id = leasehold_types::LeaseId::from_bytes(random());
        let lease_id = Bytes::copy_from_slice(id.as_bytes());
        let ask = Ask::Acquire(pb::StreamAcquire {
            resource: name.to_owned(),
            lease_id: lease_id.clone(),
            wait_ms: if wait == Wait::Yes { WAIT_MS } else { 0 },
            mode: pb::Mode::Exclusive.into(),
            class: pb::Class::Correctness.into(),
            ..pb::StreamAcquire::default()
        });
        match self.ask(ask).await? {
            Outcome::Granted(_) => Ok(Some(lease_id)),
            Outcome::NotGranted(_) => Ok(None),
            other => bail!("an acquire was answered with {other:?}"),
        }
    }

    async fn release(&mut self, lease_id: Bytes) -> anyhow::Result<()> {
        match self.ask(Ask::Release(pb::StreamRelease { lease_id })).await? {
            Outcome::Released(_) => Ok(()),
            other => bail!("a release was answered with {other:?}"),
        }
    }

    async fn renew(&mut self, lease_id: &Bytes) -> anyhow::Result<()> {
        match self.ask(Ask::Renew(pb::StreamRenew { lease_id: lease_id.clone() })).await? {
            Outcome::Renewed(_) => Ok(()),
            other => bail!("a renewal was answered with {other:?}"),
        }
    }
}
