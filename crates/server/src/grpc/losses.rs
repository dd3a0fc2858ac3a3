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

/// The stream of each held lease. Every lease of every stream is in it once, and nowhere else in this crate: a stream
/// that ends does not know which are its own.
#[derive(Debug, Default)]
struct Streams {
    by_lease: HashMap<LeaseId, LossSender>,
    /// About how many of these are of streams that have ended.
    stale: usize,
}

/// Knows the stream of each held lease. The loop of the node only ever puts into a queue; looking up is done by a task,
/// so that the loop never waits for a lock (N9).
#[derive(Debug)]
pub(crate) struct Losses {
    ended: mpsc::UnboundedSender<Loss>,
    streams: Arc<Mutex<Streams>>,
}

impl Losses {
    /// Starts the task; it ends when this is dropped.
    pub(crate) fn start() -> Self {
        let (ended, queue) = mpsc::unbounded_channel();
        let streams = Arc::<Mutex<Streams>>::default();
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
            streams.by_lease.insert(*lease, sender.clone());
        }
    }

    /// Nobody is to be told of these any more. A lease that another stream has taken over stays with that one.
    pub(super) fn forget(&self, leases: &[LeaseId], sender: &LossSender) {
        let mut streams = self.lock();
        for lease in leases {
            if streams.by_lease.get(lease).is_some_and(|watcher| watcher.same_channel(sender)) {
                streams.by_lease.remove(lease);
            }
        }
    }

    /// A stream has ended, and its receiver is closed, with about so many leases. All that are left of such streams are
    /// looked for once they are half of what is here, so that an ending costs no more than its own leases.
    pub(super) fn leave(&self, leases: usize) {
        let mut streams = self.lock();
        streams.stale += leases;
        if streams.stale * 2 > streams.by_lease.len() {
            streams.by_lease.retain(|_, stream| !stream.is_closed());
            streams.by_lease.shrink_to_fit();
            streams.stale = 0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        lock(&self.streams)
    }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().expect("nothing panics while it holds the map")
}

async fn tell(mut queue: mpsc::UnboundedReceiver<Loss>, streams: Arc<Mutex<Streams>>) {
    while let Some(loss) = queue.recv().await {
        let stream = lock(&streams).by_lease.remove(&loss.lease_id);
        if let Some(stream) = stream {
            // A stream that ended meanwhile resumes elsewhere, and learns of it with its keep-alive.
            let _ = stream.send(loss);
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ids::random;

    use super::*;

    fn some(count: usize) -> Vec<LeaseId> {
        (0..count).map(|_| LeaseId::from_bytes(random())).collect()
    }

    #[tokio::test]
    async fn a_stream_that_ended_leaves_nothing_behind_and_takes_nothing_along() {
        let losses = Losses::start();
        let (stays, mut stays_hears) = mpsc::unbounded_channel();
        let (ends, ends_hears) = mpsc::unbounded_channel();
        let (kept, taken_over, left) = (some(10), some(10), some(30));
        losses.watch(&kept, &stays);
        losses.watch(&[taken_over.clone(), left].concat(), &ends);
        losses.watch(&taken_over, &stays);
        drop(ends_hears);
        losses.leave(40);
        assert_eq!(losses.lock().by_lease.len(), 20);

        losses.forget(&taken_over, &ends);
        assert_eq!(losses.lock().by_lease.len(), 20, "another stream has them");
        losses.released(taken_over[0], "r", FencingToken::new(1).unwrap());
        assert_eq!(stays_hears.recv().await.unwrap().lease_id, taken_over[0]);
        losses.forget(&kept, &stays);
        assert_eq!(losses.lock().by_lease.len(), 9);
    }

    #[tokio::test]
    async fn few_leases_of_ended_streams_stay_until_they_are_many() {
        let losses = Losses::start();
        let (stays, _hears) = mpsc::unbounded_channel();
        losses.watch(&some(30), &stays);
        for round in 1..=4 {
            let (ends, ends_hears) = mpsc::unbounded_channel();
            losses.watch(&some(10), &ends);
            drop(ends_hears);
            losses.leave(10);
            let there = losses.lock().by_lease.len();
            assert_eq!(there, if round < 4 { 30 + 10 * round } else { 30 });
        }
    }
}
