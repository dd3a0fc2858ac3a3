//! The newest events, kept for watchers that resume.
//!
//! One ring for all watchers: each has only a place in it, so a slow watcher costs nothing and is told `compacted` when
//! its place has gone. The loop takes the lock once a commit, to add one page; watchers copy pointers to pages under it.

use std::collections::VecDeque;
use std::sync::{Arc, RwLock};

use leasehold_types::Slot;
use tokio::sync::watch;

use crate::{EventId, Happened};

/// The events of one commit. The positions of events count from the start of the process.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) first: u64,
    pub(crate) events: Arc<[Happened]>,
    bytes: usize,
}

impl Page {
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The events of a page are all journaled, or none is.
    fn last_id(&self) -> Option<EventId> {
        self.events.last().and_then(|kept| kept.id)
    }

    /// The place of its first event after `id`.
    fn position_after(&self, id: EventId) -> u64 {
        self.first + self.events.partition_point(|kept| kept.id <= Some(id)) as u64
    }
}

#[derive(Debug)]
struct Pages {
    pages: VecDeque<Arc<Page>>,
    end: u64,
    events: usize,
    bytes: usize,
    /// Journaled events up to and with this one are not here.
    dropped_through: Option<EventId>,
    /// The newest journaled event that was ever here.
    newest: Option<EventId>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ring {
    pages: RwLock<Pages>,
    most_events: usize,
    most_bytes: usize,
    /// The end of the ring; told to everybody who waits. `None` once the node has stopped.
    end: watch::Sender<Option<u64>>,
}

/// What a watcher finds at its place.
pub(crate) enum Found {
    /// Pages from the place on, at least one.
    Pages(Vec<Arc<Page>>),
    /// The place has gone; this is the oldest.
    Compacted { position: u64, oldest: Option<EventId> },
    /// Nothing new.
    Nothing,
}

/// Pages that a watcher gets at once: bounds how long it holds the lock and how much it has in hand.
const PAGES_AT_ONCE: usize = 64;

impl Ring {
    /// A ring that has nothing up to and with `slot`; 0 if that is nothing at all.
    pub(crate) fn new(most_events: usize, most_bytes: usize, slot: Slot) -> Self {
        let dropped_through = (slot > Slot(0)).then_some(EventId { slot, n: u32::MAX });
        let newest = dropped_through;
        let pages = Pages { pages: VecDeque::new(), end: 0, events: 0, bytes: 0, dropped_through, newest };
        Self { pages: RwLock::new(pages), most_events, most_bytes, end: watch::Sender::new(Some(0)) }
    }

    /// Adds events that are not journaled. They are for those who watch now: with nobody there they are not kept.
    pub(crate) fn push_live(&self, events: Arc<[Happened]>) {
        if self.end.receiver_count() > 0 {
            self.push(events);
        }
    }

    /// Adds the events of a commit.
    pub(crate) fn push(&self, events: Arc<[Happened]>) {
        if events.is_empty() {
            return;
        }
        let bytes = events.iter().map(size).sum();
        let mut pages = self.pages.write().expect("nothing panics while it holds the ring");
        let first = pages.end;
        pages.push(Page { first, events, bytes });
        pages.shrink(self.most_events, self.most_bytes);
    }

    /// Wakes those who wait for what was added. Apart from adding, since it costs something for each of them: under load
    /// one call announces many commits.
    pub(crate) fn announce(&self) {
        let end = self.end();
        self.end.send_if_modified(|known| {
            let is_news = known.is_some_and(|known| known != end);
            if is_news {
                *known = Some(end);
            }
            is_news
        });
    }

    /// The place right after everything that is there.
    pub(crate) fn end(&self) -> u64 {
        self.read().end
    }

    /// The place right after `id`. `Err` when events after it are not kept any more, or when it is from another life of
    /// the journal: then with the place and id of the oldest that is kept.
    pub(crate) fn after(&self, id: EventId) -> Result<u64, (u64, Option<EventId>)> {
        let pages = self.read();
        if Some(id) < pages.dropped_through || Some(id) > pages.newest {
            return Err((pages.start(), pages.oldest_id()));
        }
        let next = pages.pages.iter().find(|page| page.last_id() > Some(id));
        Ok(next.map_or(pages.end, |page| page.position_after(id)))
    }

    /// What is at a place.
    pub(crate) fn from(&self, position: u64) -> Found {
        let pages = self.read();
        if position >= pages.end {
            return Found::Nothing;
        }
        if position < pages.start() {
            return Found::Compacted { position: pages.start(), oldest: pages.oldest_id() };
        }
        let skip = pages.pages.partition_point(|page| page.end() <= position);
        Found::Pages(pages.pages.iter().skip(skip).take(PAGES_AT_ONCE).cloned().collect())
    }

    /// Tells when something is added, or the node stops.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.end.subscribe()
    }

    /// Ends every watch.
    pub(crate) fn close(&self) {
        self.end.send_replace(None);
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Pages> {
        self.pages.read().expect("nothing panics while it holds the ring")
    }
}

impl Pages {
    fn push(&mut self, page: Page) {
        self.end = page.end();
        self.events += page.events.len();
        self.bytes += page.bytes;
        self.newest = page.last_id().max(self.newest);
        self.pages.push_back(Arc::new(page));
    }

    /// Drops the oldest pages; the newest stays, however large.
    fn shrink(&mut self, most_events: usize, most_bytes: usize) {
        while (self.events > most_events || self.bytes > most_bytes) && self.pages.len() > 1 {
            let Some(page) = self.pages.pop_front() else { return };
            self.events -= page.events.len();
            self.bytes -= page.bytes;
            self.dropped_through = page.last_id().max(self.dropped_through);
        }
    }

    fn start(&self) -> u64 {
        self.pages.front().map_or(self.end, |page| page.first)
    }

    fn oldest_id(&self) -> Option<EventId> {
        self.pages.iter().find_map(|page| page.events.first().and_then(|kept| kept.id))
    }
}

/// About what an event costs, its texts counted as if nobody else had them.
fn size(kept: &Happened) -> usize {
    let texts = kept.event.resource.as_str().len() + kept.event.owner.as_str().len();
    size_of::<Happened>() + texts
}

#[cfg(test)]
mod tests {
    use leasehold_types::WallTime;

    use super::*;
    use crate::testing::event;

    fn id(slot: u64, n: u32) -> EventId {
        EventId { slot: Slot(slot), n }
    }

    fn happened(id: Option<EventId>) -> Happened {
        Happened { id, at: WallTime(1), event: event("r") }
    }

    fn ring(most_events: usize) -> Ring {
        Ring::new(most_events, usize::MAX, Slot(0))
    }

    fn push(ring: &Ring, slot: u64, events: usize) {
        ring.push((0..events).map(|n| happened(Some(id(slot, u32::try_from(n).unwrap())))).collect());
    }

    fn ids_from(ring: &Ring, position: u64) -> Vec<EventId> {
        let Found::Pages(pages) = ring.from(position) else { panic!("there is something at {position}") };
        pages.iter().flat_map(|page| page.events.iter()).filter_map(|kept| kept.id).collect()
    }

    #[test]
    fn a_place_is_found_right_after_an_id() {
        let ring = ring(100);
        push(&ring, 1, 2);
        push(&ring, 3, 1);
        assert_eq!(ring.after(id(1, 0)), Ok(1));
        assert_eq!(ring.after(id(1, 1)), Ok(2));
        assert_eq!(ring.after(id(2, 9)), Ok(2), "slots without events have no ids, but may be asked for");
        assert_eq!(ring.after(id(3, 0)), Ok(3));
        assert_eq!(ids_from(&ring, 2), [id(3, 0)]);
        assert!(matches!(ring.from(3), Found::Nothing));
    }

    #[test]
    fn what_was_dropped_is_said_to_be() {
        let ring = ring(2);
        for slot in 1..=4 {
            push(&ring, slot, 1);
        }
        assert_eq!(ring.after(id(1, 0)), Err((2, Some(id(3, 0)))));
        assert_eq!(ring.after(id(2, 0)), Ok(2), "nothing after it is missing");
        assert!(
            matches!(ring.from(0), Found::Compacted { position: 2, oldest: Some(oldest) } if oldest == id(3, 0))
        );
    }

    #[test]
    fn an_id_from_another_life_is_not_taken_for_ours() {
        let ring = ring(10);
        push(&ring, 5, 1);
        assert_eq!(ring.after(id(6, 0)), Err((0, Some(id(5, 0)))));
    }

    #[test]
    fn a_ring_after_a_snapshot_has_nothing_before_it() {
        let ring = Ring::new(10, usize::MAX, Slot(7));
        assert!(ring.after(id(6, 3)).is_err());
        push(&ring, 8, 1);
        assert!(ring.after(id(7, 0)).is_err(), "slot 7 may have had more events");
        assert_eq!(ring.after(id(8, 0)), Ok(1));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let ring = Ring::new(usize::MAX, 1_000, Slot(0));
        for slot in 1..=100 {
            push(&ring, slot, 1);
        }
        assert!(ring.read().bytes <= 1_000 && ring.read().pages.len() > 1);
    }

    #[test]
    fn live_events_are_kept_only_for_somebody() {
        let ring = ring(10);
        ring.push_live([happened(None)].into());
        assert_eq!(ring.end(), 0);
        let _watcher = ring.subscribe();
        ring.push_live([happened(None)].into());
        assert_eq!(ring.end(), 1);
    }
}
