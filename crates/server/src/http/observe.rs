//! `GET /v1/elections/{name}/observe`: who leads, as server-sent events.
//!
//! The stream begins with the present state and tells every change after it. Between two leaders there is always a
//! `vacant`, and tokens only grow. Leaders that came and went faster than the reader reads may be left out.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use hyper::body::Incoming;
use leasehold_api::{ErrorCode, Leader, Problem, VacantEvent};
use leasehold_core::{Event, EventKind};
use leasehold_node::{Watch, WatchFrom, WatchItem};
use leasehold_types::FencingToken;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::answer::{Answer, Failure};
use super::elections::{Election, explain};
use super::events::{event_stream, write_frame};
use super::request::{self, Query};
use super::{App, convert};
use crate::config::patience;

/// `GET /v1/elections/{name}/observe`.
pub(super) fn stream(
    app: &Arc<App>,
    name: &str,
    query: Option<&str>,
    body: Incoming,
) -> Result<Answer, Failure> {
    Query::read(query, &[])?;
    request::no_body(&body)?;
    let election = Election::named(name)?;
    let place = Arc::clone(&app.watchers)
        .try_acquire_owned()
        .map_err(|_| Problem::new(ErrorCode::Overloaded, "too many event streams are open"))?;
    let observer = Observer {
        // Before the first question, so that nothing falls between the two.
        watch: app.handle.watch(app.tenant.clone(), WatchFrom::Now),
        drain: app.drain.clone(),
        app: Arc::clone(app),
        election,
        told: None,
        _place: place,
    };
    let pieces =
        stream::unfold(observer, |mut observer| async move { Some((observer.next().await?, observer)) });
    Ok(event_stream(pieces))
}

/// What the reader knows.
enum Told {
    Leads(Leader),
    Vacant,
}

struct Observer {
    watch: Watch,
    drain: watch::Receiver<bool>,
    app: Arc<App>,
    election: Election,
    /// `None` before the first answer.
    told: Option<Told>,
    _place: OwnedSemaphorePermit,
}

impl Observer {
    /// The next piece of the stream; `None` ends it, and a reader that comes again is told the state again.
    async fn next(&mut self) -> Option<Bytes> {
        if self.told.is_none() {
            return self.look().await.map(Into::into);
        }
        loop {
            let items = tokio::select! {
                biased;
                () = super::draining(&mut self.drain) => return None,
                items = self.watch.next() => items.ok()?,
                () = tokio::time::sleep(patience::HEARTBEAT) => {
                    // A sign of life is a claim that nothing was missed: it rests on a look (R1).
                    let text = self.look().await?;
                    return Some(if text.is_empty() { Bytes::from_static(b": still here\n\n") } else { text.into() });
                }
            };
            let text = self.follow(items).await?;
            if !text.is_empty() {
                return Some(text.into());
            }
        }
    }

    /// Tells endings as they are told to us, so that a short vacancy is seen; for everything else looks.
    async fn follow(&mut self, items: Vec<WatchItem>) -> Option<String> {
        let (mut text, mut look) = (String::new(), false);
        for item in items {
            match item {
                WatchItem::Event { event, .. } if self.is_ours(&event) => match event.kind {
                    EventKind::Ended { .. } => self.ended(&mut text, event.token),
                    EventKind::Granted { .. } | EventKind::Proclaimed => look = true,
                    EventKind::Queued | EventKind::Renewed { .. } => {}
                },
                WatchItem::Event { .. } => {}
                WatchItem::Compacted { .. } => look = true,
            }
        }
        if look {
            text.push_str(&self.look().await?);
        }
        Some(text)
    }

    fn is_ours(&self, event: &Event) -> bool {
        event.resource.name() == self.election.resource.as_str()
    }

    /// Asks who leads, and tells what is new.
    async fn look(&mut self) -> Option<String> {
        let explained = explain(&self.app, &self.election.resource).await.ok()?;
        let mut text = String::new();
        match (convert::leader(&explained), &self.told) {
            (Some(leader), Some(Told::Leads(told))) if leader == *told => {}
            (Some(leader), told) => {
                if let Some(Told::Leads(before)) = told
                    && before.fencing_token != leader.fencing_token
                {
                    self.ended(&mut text, Some(before.fencing_token));
                }
                write_frame(&mut text, "leader", None, &leader);
                self.told = Some(Told::Leads(leader));
            }
            (None, Some(Told::Leads(told))) => self.ended(&mut text, Some(told.fencing_token)),
            (None, Some(Told::Vacant)) => {}
            (None, None) => {
                write_frame(&mut text, "vacant", None, &VacantEvent { fencing_token: explained.last_token });
                self.told = Some(Told::Vacant);
            }
        }
        Some(text)
    }

    /// The leader with this token leads no longer; one that was never told, or told already, is not told.
    fn ended(&mut self, text: &mut String, token: Option<FencingToken>) {
        if let Some(Told::Leads(leader)) = &self.told
            && Some(leader.fencing_token) == token
        {
            write_frame(text, "vacant", None, &VacantEvent { fencing_token: token });
            self.told = Some(Told::Vacant);
        }
    }
}
