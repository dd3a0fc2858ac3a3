//! `GET /v1/elections/{name}/observe`: who leads, as server-sent events; the same over gRPC rests on [`Observer`].
//!
//! The stream begins with the present state and tells every change after it. Between two leaders there is always a
//! `vacant`, and tokens only grow. Leaders that came and went faster than the reader reads may be left out.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use leasehold_api::{Leader, Problem, VacantEvent};
use leasehold_core::{Event, EventKind};
use leasehold_node::{Watch, WatchFrom, WatchItem};
use leasehold_types::FencingToken;
use tokio::sync::watch;

use super::answer::{Answer, Failure};
use super::elections::{Election, explain};
use super::events::{event_stream, write_frame};
use super::received::Received;
use super::{App, convert};
use crate::auth::WatchPlace;
use crate::config::patience;

/// `GET /v1/elections/{name}/observe`.
pub(super) fn stream(app: &Arc<App>, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    let observer = Observer::begin(app, Election::named(name)?)?;
    let pieces = stream::unfold(observer, |mut observer| async move {
        let changes = observer.next().await?;
        Some((piece(changes), observer))
    });
    Ok(event_stream(pieces))
}

fn piece(changes: Vec<Change>) -> Bytes {
    let mut text = String::new();
    for change in &changes {
        match change {
            Change::Leads(leader) => write_frame(&mut text, "leader", None, leader),
            Change::Vacant { last } => {
                write_frame(&mut text, "vacant", None, &VacantEvent { fencing_token: *last });
            }
        }
    }
    if text.is_empty() { Bytes::from_static(b": still here\n\n") } else { text.into() }
}

/// What an observer is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Somebody leads, or proclaims something else.
    Leads(Leader),
    /// Nobody leads.
    Vacant {
        /// The token of the last leader.
        last: Option<FencingToken>,
    },
}

/// Follows one election.
pub(crate) struct Observer {
    watch: Watch,
    drain: watch::Receiver<bool>,
    app: Arc<App>,
    election: Election,
    /// What the reader knows; `None` before the first answer.
    told: Option<Change>,
    _place: WatchPlace,
}

impl Observer {
    /// Takes a place among the event streams.
    pub(crate) fn begin(app: &Arc<App>, election: Election) -> Result<Self, Problem> {
        // Before the first question, so that nothing falls between the two.
        let (watch, place) = app.watch(election.resource.as_str(), WatchFrom::Now)?;
        Ok(Self {
            watch,
            drain: app.drain.clone(),
            app: Arc::clone(app),
            election,
            told: None,
            _place: place,
        })
    }

    /// What is new, and nothing as a sign of life; `None` ends the stream, and a reader that comes again is told the
    /// state again.
    pub(crate) async fn next(&mut self) -> Option<Vec<Change>> {
        if self.told.is_none() {
            return self.look().await;
        }
        loop {
            let items = tokio::select! {
                biased;
                () = super::draining(&mut self.drain) => return None,
                items = self.watch.next() => items.ok()?,
                // A sign of life is a claim that nothing was missed: it rests on a look (R1).
                () = tokio::time::sleep(patience::HEARTBEAT) => return self.look().await,
            };
            self.app.must_be_admitted().ok()?;
            let changes = self.follow(items).await?;
            if !changes.is_empty() {
                return Some(changes);
            }
        }
    }

    /// Tells endings as they are told to us, so that a short vacancy is seen; for everything else looks.
    async fn follow(&mut self, items: Vec<WatchItem>) -> Option<Vec<Change>> {
        let (mut changes, mut look) = (Vec::new(), false);
        for item in items {
            match item {
                WatchItem::Event { event, .. } if self.is_ours(&event) => match event.kind {
                    EventKind::Ended { .. } => self.ended(&mut changes, event.token),
                    EventKind::Granted { .. } | EventKind::Proclaimed => look = true,
                    EventKind::Queued | EventKind::Renewed { .. } => {}
                },
                WatchItem::Event { .. } => {}
                WatchItem::Compacted { .. } => look = true,
            }
        }
        if look {
            changes.extend(self.look().await?);
        }
        Some(changes)
    }

    fn is_ours(&self, event: &Event) -> bool {
        event.resource.name() == self.election.resource.as_str()
    }

    /// Asks who leads, and tells what is new.
    async fn look(&mut self) -> Option<Vec<Change>> {
        let explained = explain(&self.app, &self.election.resource).await.ok()?;
        let mut changes = Vec::new();
        match (convert::leader(&explained), &self.told) {
            (Some(leader), Some(Change::Leads(told))) if leader == *told => {}
            (Some(leader), told) => {
                if let Some(Change::Leads(before)) = told
                    && before.fencing_token != leader.fencing_token
                {
                    self.ended(&mut changes, Some(before.fencing_token));
                }
                self.tell(&mut changes, Change::Leads(leader));
            }
            (None, Some(Change::Leads(told))) => self.ended(&mut changes, Some(told.fencing_token)),
            (None, Some(Change::Vacant { .. })) => {}
            (None, None) => self.tell(&mut changes, Change::Vacant { last: explained.last_token }),
        }
        Some(changes)
    }

    /// The leader with this token leads no longer; one that was never told, or told already, is not told.
    fn ended(&mut self, changes: &mut Vec<Change>, token: Option<FencingToken>) {
        if matches!(&self.told, Some(Change::Leads(leader)) if Some(leader.fencing_token) == token) {
            self.tell(changes, Change::Vacant { last: token });
        }
    }

    fn tell(&mut self, changes: &mut Vec<Change>, change: Change) {
        self.told = Some(change.clone());
        changes.push(change);
    }
}
