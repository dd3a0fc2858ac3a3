//! Where a node sits: what its lives as standby and as active share, and what its handles hold on to.
//!
//! Every life has a [`Shared`] of its own with its own queue, epoch and events, so that nothing of one can slip into the
//! next. The seat says which is the present one.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Active;
use crate::beside::Places;
use crate::shared::{Message, Shared};

/// See the module.
#[derive(Debug)]
pub(crate) struct Seat {
    shared: watch::Sender<Arc<Shared>>,
    active: watch::Sender<Option<Active>>,
    closing: watch::Sender<bool>,
    /// On the loop's thread.
    places: Places,
}

impl Seat {
    /// The seat in its first life.
    pub(crate) fn new(shared: Arc<Shared>, places: Places) -> Self {
        Self {
            places,
            shared: watch::Sender::new(shared),
            active: watch::Sender::new(None),
            closing: watch::Sender::new(false),
        }
    }

    /// The places on the loop's thread.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// The present life.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared.borrow())
    }

    /// The next life begins.
    pub(crate) fn enter(&self, shared: Arc<Shared>) {
        self.shared.send_replace(shared);
        // Ordered before this life was there to hear of it: exactly one of the two sides sees the other.
        if *self.closing.borrow() {
            self.tell_shutdown();
        }
    }

    /// Orders the end, whatever the present life is.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        self.tell_shutdown();
    }

    /// Completes when the end was ordered. Cancel-safe.
    pub(crate) async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        // The sender is this seat itself, so it cannot be gone.
        drop(closing.wait_for(|closing| *closing).await);
    }

    /// Who is active, as far as this node knows.
    pub(crate) fn active(&self) -> watch::Receiver<Option<Active>> {
        self.active.subscribe()
    }

    /// Says who is active; wakes nobody when that is known.
    pub(crate) fn set_active(&self, active: Option<Active>) {
        self.active.send_if_modified(|known| {
            let changed = *known != active;
            *known = active;
            changed
        });
    }

    fn tell_shutdown(&self) {
        // A life that has ended, or that is a standby's, takes no orders here.
        let _ = self.shared().queue.send(Message::Shutdown);
    }
}
