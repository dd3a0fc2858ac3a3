//! What all lives of one node are made of.

use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_types::{ClusterId, Durability, Epoch, Slot};
use tokio::runtime;
use tokio::sync::mpsc;

use crate::beside::Places;
use crate::ring::Ring;
use crate::seat::Seat;
use crate::shared::{Bounds, Identity, Phase, Shared};
use crate::{Clock, NodeConfig, Observer};

/// See the module.
pub(crate) struct Node {
    pub(crate) config: NodeConfig,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) seat: Arc<Seat>,
}

impl Node {
    /// A node that has not begun to live.
    pub(crate) fn new(
        config: NodeConfig,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        runtime: &runtime::Handle,
    ) -> Self {
        // An append to a journal that nobody shares blocks the loop's thread, and whoever is there with it.
        let places = Places::new(runtime.clone(), config.shared.is_none());
        let bounds = bounds(&config);
        let nobody = ClusterId::from_bytes([0; 16]);
        // Nothing is known of the journal yet, so nothing is promised of it.
        let identity = identity(&config, &*journal, nobody, Durability::Volatile);
        let unborn = nothing(identity, bounds, Arc::clone(&clock), Arc::clone(&observer));
        Self { config, journal, clock, observer, seat: Arc::new(Seat::new(Arc::new(unborn), places)) }
    }

    /// The bounds of a queue.
    pub(crate) fn bounds(&self) -> Bounds {
        bounds(&self.config)
    }

    /// A life as a standby, as handles see it: it takes nothing, and has no events to tell.
    pub(crate) fn standing_by(&self, cluster: ClusterId, durability: Durability) -> Arc<Shared> {
        let identity = identity(&self.config, &*self.journal, cluster, durability);
        let (clock, observer) = (Arc::clone(&self.clock), Arc::clone(&self.observer));
        Arc::new(nothing(identity, self.bounds(), clock, observer))
    }
}

fn bounds(config: &NodeConfig) -> Bounds {
    let NodeConfig { queue, queue_reserve, waiters, .. } = *config;
    Bounds { queue, reserve: queue_reserve.min(queue), waiters }
}

fn identity(
    config: &NodeConfig,
    journal: &dyn Journal,
    cluster: ClusterId,
    durability: Durability,
) -> Identity {
    let (node, journal) = (Arc::clone(&config.name), journal.kind());
    Identity { cluster, node, journal, durability, known_format: config.known_format }
}

/// A life in which nothing is taken.
fn nothing(identity: Identity, bounds: Bounds, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Shared {
    let ring = Ring::new(1, 1, Slot(0));
    ring.close();
    // Nobody listens at the other end.
    let (queue, _) = mpsc::unbounded_channel();
    let shared = Shared::new(identity, Epoch(0), bounds, clock, observer, Arc::new(ring), queue);
    shared.set_phase(Phase::Stopped);
    shared
}
