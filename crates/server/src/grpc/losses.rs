//! Which stream is told when a lease ends without its holder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use leasehold_core::{Event, EventKind};
use leasehold_types::{EndReason, FencingToken, LeaseId};
use tokio::sync::mpsc;

/// A lease that ended without its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Loss {
    pub(super) lease_id: LeaseId,
    pub(super) resource: Box<str>,
    pub(super) token: FencingToken,
    pub(super) reason: EndReason,
}

/// Where the losses of one stream go.
pub(super) type LossSender = mpsc::UnboundedSender<Loss>;

type Streams = Mutex<HashMap<LeaseId, LossSender>>;

/// Knows the stream of each held lease. The loop of the node only ever puts into a queue; looking up is done by a task,
/// so that the loop never waits for a lock (N9).
#[derive(Debug)]
pub(crate) struct Losses {
    ended: mpsc::UnboundedSender<Loss>,
    streams: Arc<Streams>,
}

impl Losses {
    /// Starts the task; it ends when this is dropped.
    pub(crate) fn start() -> Self {
        let (ended, queue) = mpsc::unbounded_channel();
        let streams = Arc::<Streams>::default();
        tokio::spawn(tell(queue, Arc::clone(&streams)));
        Self { ended, streams }
    }

    /// Looks at what happened; called on the loop's own thread.
    pub(crate) fn event(&self, event: &Event) {
        let EventKind::Ended { reason, .. } = event.kind else { return };
        if reason == EndReason::Released {
            return;
        }
        let Some(token) = event.token else { return };
        let loss = Loss { lease_id: event.lease_id, resource: event.resource.name().into(), token, reason };
        // The task is gone only when the server is.
        let _ = self.ended.send(loss);
    }

    /// A lease was given back by its id, past the stream that holds it: whoever works under it has to know. A stream's
    /// own releases need no telling.
    pub(crate) fn released(&self, lease_id: LeaseId, resource: &str, token: FencingToken) {
        let loss = Loss { lease_id, resource: resource.into(), token, reason: EndReason::Released };
        // As above.
        let _ = self.ended.send(loss);
    }

    /// These leases belong to a stream now. One that ended a moment before is told with the next keep-alive.
    pub(super) fn watch(&self, leases: &[LeaseId], sender: &LossSender) {
        let mut streams = self.lock();
        for lease in leases {
            streams.insert(*lease, sender.clone());
        }
    }

    /// Nobody is to be told of these any more: released, or their stream is gone. A lease that another stream has
    /// taken over stays with that one.
    pub(super) fn forget<'a>(&self, leases: impl IntoIterator<Item = &'a LeaseId>, sender: &LossSender) {
        let mut streams = self.lock();
        for lease in leases {
            if streams.get(lease).is_some_and(|watcher| watcher.same_channel(sender)) {
                streams.remove(lease);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseId, LossSender>> {
        lock(&self.streams)
    }
}

fn lock(streams: &Streams) -> MutexGuard<'_, HashMap<LeaseId, LossSender>> {
    streams.lock().expect("nothing panics while it holds the map")
}

async fn tell(mut queue: mpsc::UnboundedReceiver<Loss>, streams: Arc<Streams>) {
    while let Some(loss) = queue.recv().await {
        let stream = lock(&streams).remove(&loss.lease_id);
        if let Some(stream) = stream {
            // A stream that ended meanwhile resumes elsewhere, and learns of it with its keep-alive.
            let _ = stream.send(loss);
        }
    }
}
