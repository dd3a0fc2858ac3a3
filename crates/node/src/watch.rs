//! Following what happens.

use std::collections::VecDeque;
use std::sync::Arc;

use leasehold_types::{TenantName, WallTime};
use tokio::sync::watch;

use crate::ring::{Found, Page, Ring};
use crate::{EventId, SharedEvent};

/// Where a watch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchFrom {
    /// With what happens next.
    Now,
    /// Right after this event, which the watcher has seen.
    After(EventId),
}

/// One thing that a watcher is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchItem {
    /// Something happened.
    Event {
        /// Its place in the journal; `None` for what is not journaled and may be missed.
        id: Option<EventId>,
        /// When, for people.
        at: WallTime,
        /// What.
        event: SharedEvent,
    },
    /// Events after the place asked for are not kept any more; the stream goes on from the oldest kept.
    Compacted {
        /// The oldest journaled event that is kept, of any tenant.
        oldest: Option<EventId>,
    },
}

/// The stream is over: the node stopped serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node stopped serving")]
pub struct WatchEnd;

/// A place in the stream of events of one tenant. It holds no events: a watcher that does not ask costs nothing.
#[derive(Debug)]
pub struct Watch {
    ring: Arc<Ring>,
    tenant: TenantName,
    position: u64,
    /// To be told before anything else: the place asked for was gone already.
    compacted: Option<WatchItem>,
    end: watch::Receiver<Option<u64>>,
}

impl Watch {
    pub(crate) fn new(ring: Arc<Ring>, tenant: TenantName, from: WatchFrom) -> Self {
        let end = ring.subscribe();
        let (position, compacted) = match from {
            WatchFrom::Now => (ring.end(), None),
            WatchFrom::After(id) => match ring.after(id) {
                Ok(position) => (position, None),
                Err((position, oldest)) => (position, Some(WatchItem::Compacted { oldest })),
            },
        };
        Self { ring, tenant, position, compacted, end }
    }

    /// What happened since the last call, at least one item; waits for it. Cancel-safe: nothing is lost when the future
    /// is dropped.
    ///
    /// # Errors
    /// The node stopped serving; resume at the active node.
    pub async fn next(&mut self) -> Result<Vec<WatchItem>, WatchEnd> {
        loop {
            let mut items = VecDeque::from_iter(self.compacted.take());
            // Seen before looking, so that what is added meanwhile wakes the wait below.
            let is_over = self.end.borrow_and_update().is_none();
            match self.ring.from(self.position) {
                Found::Pages(pages) => self.read(&pages, &mut items),
                Found::Compacted { position, oldest } => {
                    self.position = position;
                    items.push_back(WatchItem::Compacted { oldest });
                }
                Found::Nothing if is_over => return Err(WatchEnd),
                Found::Nothing if items.is_empty() => self.end.changed().await.map_err(|_| WatchEnd)?,
                Found::Nothing => {}
            }
            if !items.is_empty() {
                return Ok(items.into());
            }
        }
    }

    fn read(&mut self, pages: &[Arc<Page>], items: &mut VecDeque<WatchItem>) {
        for page in pages {
            // A page that the watch begins in the middle of was seen up to there.
            let seen = usize::try_from(self.position.saturating_sub(page.first)).unwrap_or(usize::MAX);
            let ours = page
                .events
                .iter()
                .enumerate()
                .skip(seen)
                .filter(|(_, kept)| kept.event.resource.tenant() == self.tenant.as_str());
            items.extend(ours.map(|(n, kept)| {
                let event = SharedEvent::new(&page.events, n);
                WatchItem::Event { id: kept.id, at: kept.at, event }
            }));
            self.position = page.end();
        }
    }
}
