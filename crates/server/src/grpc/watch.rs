//! What happens, as a stream. It is pulled by the client's reading: a slow reader holds no buffer of ours beyond one
//! batch, and is told when it fell behind what is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Event, EventKind};
use leasehold_node::{EventId, Watch, WatchFrom, WatchItem};
use leasehold_proto::v1 as pb;
use leasehold_proto::v1::lock_event::Kind;
use leasehold_proto::v1::watch_event::What;
use leasehold_types::{FencingToken, WallTime};
use tokio::sync::watch;
use tonic::Status;

use super::{convert, problem};
use crate::auth::WatchPlace;
use crate::http::convert::bad_field;
use crate::http::{App, draining};

struct Events {
    watch: Watch,
    prefix: String,
    drain: watch::Receiver<bool>,
    app: Arc<App>,
    /// Made, and not taken yet.
    ready: VecDeque<pb::WatchEvent>,
    _place: WatchPlace,
}

/// Follows what happens.
pub(super) fn start(
    app: &Arc<App>,
    request: pb::WatchRequest,
) -> Result<impl Stream<Item = Result<pb::WatchEvent, Status>> + Send + use<>, Problem> {
    let after = convert::given(&request.after)
        .map(|text| text.parse::<EventId>().map_err(|error| bad_field("after", error)));
    let from = after.transpose()?.map_or(WatchFrom::Now, WatchFrom::After);
    let (watch, place) = app.watch(&request.prefix, from)?;
    let events = Events {
        watch,
        prefix: request.prefix,
        drain: app.drain.clone(),
        app: Arc::clone(app),
        ready: VecDeque::new(),
        _place: place,
    };
    Ok(unfold(Some(events), |events| async move {
        let mut events = events?;
        match events.next().await {
            Ok(event) => Some((Ok(event), Some(events))),
            Err(end) => Some((Err(problem::status(end)), None)),
        }
    }))
}

impl Events {
    /// The next event, or why there are no more; the client resumes with the last id that it saw.
    async fn next(&mut self) -> Result<pb::WatchEvent, Problem> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let items = tokio::select! {
                biased;
                () = draining(&mut self.drain) => return Err(Problem::new(ErrorCode::NotActive, "the node is shutting down")),
                items = self.watch.next() => items,
            };
            let items = items.map_err(|end| Problem::new(ErrorCode::NotActive, end.to_string()))?;
            self.app.must_be_admitted()?;
            self.ready = items.into_iter().filter_map(|item| self.told(item)).collect();
        }
    }

    fn told(&self, item: WatchItem) -> Option<pb::WatchEvent> {
        match item {
            WatchItem::Event { id, at, event } if event.resource.name().starts_with(&self.prefix) => {
                let id = id.map(|id| id.to_string()).unwrap_or_default();
                Some(pb::WatchEvent { id, what: Some(What::Lock(lock_event(&event, at)?)) })
            }
            WatchItem::Event { .. } => None,
            WatchItem::Compacted { oldest } => {
                let oldest = oldest.map(|id| id.to_string()).unwrap_or_default();
                Some(pb::WatchEvent {
                    id: String::new(),
                    what: Some(What::Compacted(pb::Compacted { oldest })),
                })
            }
        }
    }
}

fn lock_event(event: &Event, at: WallTime) -> Option<pb::LockEvent> {
    let (kind, reason, max_hold) = match event.kind {
        EventKind::Granted { .. } => (Kind::Granted, None, false),
        EventKind::Ended { reason, max_hold, .. } => (Kind::Ended, Some(reason), max_hold),
        EventKind::Queued => (Kind::Queued, None, false),
        EventKind::Renewed { .. } => (Kind::Renewed, None, false),
        // What a leader proclaims is told to those who observe its election.
        EventKind::Proclaimed => return None,
    };
    Some(pb::LockEvent {
        kind: kind.into(),
        resource: event.resource.name().to_owned(),
        owner_id: event.owner.as_str().to_owned(),
        fencing_token: event.token.map(FencingToken::get),
        mode: convert::mode(event.mode).into(),
        permit: event.permit.map(|permit| permit.0),
        ttl_ms: event.ttl_ms,
        reason: reason.map(|reason| convert::end_reason(reason).into()),
        max_hold,
        at_ms: at.0,
    })
}
