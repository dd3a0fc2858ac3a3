//! What goes out: to watchers and observers, to whoever asks for the node's state, and to callers.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Reply, Ticket};
use leasehold_types::Slot;

use super::{Back, Desk};
use crate::happened;
use crate::post::Post;
use crate::state::{CommittedBatch, Delivery};
use crate::{Durable, Happened, Settled};

impl Desk {
    /// Keeps a commit until everybody is told.
    pub(crate) fn committed(&mut self, batch: CommittedBatch, took: Duration) {
        self.commit = Some((batch, took));
    }

    /// Whether work with the journal was done of which nobody was told yet.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Tells everybody what may be told now: watchers and observers of the last commit, then whoever asks for the node's
    /// state, and at last the callers, so that whoever has an answer finds it in the sizes too.
    pub(crate) fn tell(&mut self) {
        self.has_news = false;
        if let Some((batch, took)) = self.commit.take() {
            self.show(batch, took);
        }
        self.publish();
        self.deliver();
    }

    /// Publishes what a node says of itself.
    pub(crate) fn publish(&mut self) {
        let counts = self.state.durable_counts();
        self.shared.publish(self.state.tail().slot, &counts, self.room);
        self.shared.set_credentials(self.state.table().journaled().credentials());
        self.shared.set_filled_by(self.turns.longest());
    }

    /// Work with the journal is done, of which answers that leave now may tell.
    pub(crate) fn settle(&mut self, slot: Option<Slot>, began: Duration, ended: Duration) {
        self.settled = Some(Settled { slot, began, ended });
        self.has_news = true;
        if slot.is_some() {
            self.commits_take = (7 * self.commits_take + ended.saturating_sub(began)) / 8;
        }
    }

    /// Shows a commit to watchers and observers.
    fn show(&mut self, batch: CommittedBatch, took: Duration) {
        let CommittedBatch { slot, facts, bytes, events } = batch;
        self.shared.observer.committed(facts, bytes, took);
        if !events.is_empty() {
            let happened = happened::of_slot(slot, events);
            self.shared.observer.events(&happened);
            self.shared.ring.push(happened);
        }
    }

    /// Hands out the answers that may leave now.
    fn deliver(&mut self) {
        let mut next = self.state.delivery();
        if next.is_none() {
            return;
        }
        let (mut live, mut post) = (Vec::new(), std::mem::take(&mut self.post));
        while let Some(delivery) = next {
            match delivery {
                Delivery::Reply(ticket, durable) => self.reply(ticket, durable, &mut post),
                Delivery::Live(at, event) => live.push(Happened { id: None, at, event }),
            }
            next = self.state.delivery();
        }
        if !live.is_empty() {
            let live: Arc<[Happened]> = live.into();
            self.shared.observer.events(&live);
            self.shared.ring.push_live(live);
        }
        for (tenant, lease_id) in post.send() {
            self.give_back(tenant, lease_id);
        }
        self.post = post;
    }

    fn reply(&mut self, ticket: Ticket, durable: Durable<Reply>, post: &mut Post) {
        let Some(waiting) = self.calls.remove(&ticket) else { return };
        if let Some(trail) = &waiting.trail {
            trail.settled(self.settled);
        }
        match waiting.back {
            Back::Lane(place) => post.add(place, durable, waiting.given_back_to),
            Back::Cell(asker) => {
                let lease_id = durable.granted_lease();
                if asker.answer(Ok(durable)).is_err()
                    && let (Some(lease_id), Some(tenant)) = (lease_id, waiting.given_back_to)
                {
                    self.give_back(tenant, lease_id);
                }
            }
        }
    }
}
