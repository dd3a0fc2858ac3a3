//! Which stream is told when a lease ends without its holder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use leasehold_core::{Event, EventKind};
use leasehold_types::{EndReason, FencingToken, LeaseId, SessionId};
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

/// The newest stream of each session that has one: an entry a session, however many leases it has.
type Streams = HashMap<SessionId, LossSender>;

/// Knows the stream of each session. The loop of the node only ever puts into a queue; looking up is done by a task,
/// so that the loop never waits for a lock (N9).
#[derive(Debug)]
pub(crate) struct Losses {
    ended: mpsc::UnboundedSender<(SessionId, Loss)>,
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
        let Some((session, token)) = event.session.zip(event.token) else { return };
        let loss = Loss { lease_id: event.lease_id, resource: event.resource.name().into(), token, reason };
        // The task is gone only when the server is.
        let _ = self.ended.send((session, loss));
    }

    /// A lease was given back by its id, past the stream of its session: whoever works under it has to know. A stream's
    /// own releases need no telling.
    pub(crate) fn released(
        &self,
        session: Option<SessionId>,
        lease_id: LeaseId,
        resource: &str,
        token: FencingToken,
    ) {
        let Some(session) = session else { return };
        let loss = Loss { lease_id, resource: resource.into(), token, reason: EndReason::Released };
        // As above.
        let _ = self.ended.send((session, loss));
    }

    /// The losses of a session go to this stream now, and no longer to an earlier one.
    pub(super) fn watch(&self, session: SessionId, stream: &LossSender) {
        self.lock().insert(session, stream.clone());
    }

    /// A stream has ended. A session that another one has taken over stays with that one.
    pub(super) fn leave(&self, session: SessionId, stream: &LossSender) {
        let mut streams = self.lock();
        if streams.get(&session).is_some_and(|watcher| watcher.same_channel(stream)) {
            streams.remove(&session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        lock(&self.streams)
    }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().expect("nothing panics while it holds the map")
}

async fn tell(mut queue: mpsc::UnboundedReceiver<(SessionId, Loss)>, streams: Arc<Mutex<Streams>>) {
    while let Some((session, loss)) = queue.recv().await {
        if let Some(stream) = lock(&streams).get(&session) {
            // A stream that ended meanwhile resumes elsewhere, and learns of it with its keep-alive.
            let _ = stream.send(loss);
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::ids::random;

    use super::*;

    #[tokio::test]
    async fn a_loss_goes_to_the_newest_stream_of_its_session_and_to_no_other() {
        let losses = Losses::start();
        let (first, mut first_hears) = mpsc::unbounded_channel();
        let (resumed, mut resumed_hears) = mpsc::unbounded_channel();
        let (other, mut other_hears) = mpsc::unbounded_channel();
        let [session, another] = [SessionId::from_bytes(random()), SessionId::from_bytes(random())];
        losses.watch(session, &first);
        losses.watch(another, &other);
        losses.watch(session, &resumed);
        losses.leave(session, &first);
        let (lease, token) = (LeaseId::from_bytes(random()), FencingToken::new(1).unwrap());
        losses.released(None, lease, "r", token);
        losses.released(Some(session), lease, "r", token);
        assert_eq!(resumed_hears.recv().await.unwrap().lease_id, lease);
        losses.leave(session, &resumed);
        losses.leave(another, &other);
        assert!(losses.lock().is_empty());
        assert!(first_hears.try_recv().is_err() && other_hears.try_recv().is_err());
    }
}
