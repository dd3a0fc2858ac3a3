//! `GET /v1/events`: what happens, as server-sent events.
//!
//! The stream is pulled by the client's reading: a slow reader holds no buffer of ours beyond one batch, is told when
//! it fell behind what is kept, and is cut when it takes nothing at all for a while.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use leasehold_api::{CompactedEvent, LockEvent, LockEventKind, Problem, Timestamp};
use leasehold_core::{Event, EventKind};
use leasehold_node::{EventId, Watch, WatchFrom, WatchItem};
use leasehold_types::{EndReason, ResourceName, WallTime};
use tokio::sync::watch;

use super::App;
use super::answer::{Answer, AnswerBody, Failure};
use super::convert::bad_field;
use super::locks::prefix;
use super::received::Received;
use super::request::Query;
use crate::auth::WatchPlace;
use crate::config::patience;

/// `GET /v1/events`.
pub(super) fn stream(app: &Arc<App>, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["prefix", "after"])?;
    let from = match after(received.headers, &query)? {
        Some(id) => WatchFrom::After(id),
        None => WatchFrom::Now,
    };
    let prefix = prefix(&query)?;
    let (watch, place) = app.watch(prefix.as_deref().unwrap_or_default(), from)?;
    let events = Events {
        watch,
        prefix,
        drain: app.drain.clone(),
        app: Arc::clone(app),
        greeted: false,
        _place: place,
    };
    let pieces = stream::unfold(events, |mut events| async move { Some((events.next().await?, events)) });
    Ok(event_stream(pieces))
}

/// An answer that goes on for as long as there are pieces.
pub(super) fn event_stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    let mut answer = Response::new(AnswerBody::Stream(Box::pin(pieces), None));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Where the client was: a browser that reconnects says it in `Last-Event-ID`, which is newer than its URL.
fn after(headers: &HeaderMap, query: &Query) -> Result<Option<EventId>, Problem> {
    let parameter = query.parsed("after", str::parse)?;
    match headers.get("last-event-id") {
        None => Ok(parameter),
        Some(value) => {
            let id = value.to_str().ok().and_then(|text| text.parse().ok());
            id.map(Some).ok_or_else(|| bad_field("Last-Event-ID", "not an event id of the form slot.n"))
        }
    }
}

struct Events {
    watch: Watch,
    prefix: Option<Box<str>>,
    drain: watch::Receiver<bool>,
    app: Arc<App>,
    greeted: bool,
    _place: WatchPlace,
}

impl Events {
    /// The next piece of the stream; `None` ends it, and the client resumes with the last id it saw.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            return Some(Bytes::from_static(b": watching\n\n"));
        }
        loop {
            let items = tokio::select! {
                biased;
                () = super::draining(&mut self.drain) => return None,
                items = self.watch.next() => items.ok()?,
                () = tokio::time::sleep(patience::HEARTBEAT) => Vec::new(),
            };
            if items.is_empty() {
                return self.heartbeat().await;
            }
            self.app.must_be_admitted().ok()?;
            let piece = self.write(items);
            // A batch of events that are all filtered out is no reason to write.
            if !piece.is_empty() {
                return Some(piece.into());
            }
        }
    }

    /// A sign of life is a claim that nothing was missed, so it is made only after a question to the journal whether
    /// this node may still speak (R1).
    async fn heartbeat(&self) -> Option<Bytes> {
        self.app.confirm().await.ok()?;
        Some(Bytes::from_static(b": still here\n\n"))
    }

    fn write(&self, items: Vec<WatchItem>) -> String {
        let mut text = String::new();
        for item in items {
            match item {
                WatchItem::Event { id, at, event } if self.is_wanted(&event) => {
                    write_event(&mut text, id, at, &event)
                }
                WatchItem::Event { .. } => {}
                WatchItem::Compacted { oldest } => {
                    let data = CompactedEvent { oldest: oldest.map(|id| id.to_string()) };
                    write_frame(&mut text, "compacted", None, &data);
                }
            }
        }
        text
    }

    fn is_wanted(&self, event: &Event) -> bool {
        self.prefix.as_deref().is_none_or(|prefix| event.resource.name().starts_with(prefix))
    }
}

fn write_event(text: &mut String, id: Option<EventId>, at: WallTime, event: &Event) {
    let Ok(resource) = ResourceName::new(event.resource.name()) else { return };
    let (kind, reason, max_hold) = match event.kind {
        EventKind::Granted { .. } => (LockEventKind::Granted, None, false),
        EventKind::Ended { reason, max_hold, .. } => (ending(reason), Some(reason), max_hold),
        // What a leader proclaims is told to those who observe its election.
        EventKind::Proclaimed => return,
        EventKind::Queued => (LockEventKind::Queued, None, false),
        EventKind::Renewed { .. } => (LockEventKind::Renewed, None, false),
    };
    let data = LockEvent {
        event: kind,
        resource,
        owner_id: event.owner.clone(),
        fencing_token: event.token,
        mode: event.mode,
        permit: event.permit,
        ttl_ms: event.ttl_ms,
        reason,
        max_hold,
        at: Timestamp(at),
    };
    write_frame(text, kind.as_str(), id, &data);
}

/// A lease that ends with its session was given back with it; the reason tells the two apart.
const fn ending(reason: EndReason) -> LockEventKind {
    match reason {
        EndReason::Released | EndReason::SessionEnded | EndReason::Unknown => LockEventKind::Released,
        EndReason::Expired => LockEventKind::Expired,
        EndReason::Forced => LockEventKind::Forced,
    }
}

/// One event as it is written.
pub(super) fn write_frame<T: serde::Serialize>(
    text: &mut String,
    event: &str,
    id: Option<EventId>,
    data: &T,
) {
    use std::fmt::Write;
    let data = serde_json::to_string(data).expect("wire types have string keys and no failing parts");
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    write!(text, "event: {event}\n{id}data: {data}\n\n").expect("a string takes everything");
}
