//! A fixture on one running engine.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use super::{Fixture, Openers, Place};
use crate::Journal;

/// Places on one engine: each is a cluster of another name. Whoever makes it keeps the engine alive.
pub struct OnEngine<M> {
    journal: M,
    histories: u64,
    next: AtomicU32,
}

impl<M> OnEngine<M> {
    /// `journal` makes the journal of a cluster's name; so many random histories are tried on it.
    pub const fn new(journal: M, histories: u64) -> Self {
        Self { journal, histories, next: AtomicU32::new(0) }
    }
}

struct Named<J>(J);

impl<J: Journal> Place for Named<J> {
    fn journal(&self) -> &dyn Journal {
        &self.0
    }
}

#[async_trait]
impl<J: Journal, M: Fn(&str) -> J + Send + Sync> Fixture for OnEngine<M> {
    fn openers(&self) -> Openers {
        Openers::Many
    }

    async fn place(&self) -> Box<dyn Place> {
        let name = format!("place-{}", self.next.fetch_add(1, Ordering::Relaxed));
        Box::new(Named((self.journal)(&name)))
    }

    fn histories(&self) -> u64 {
        self.histories
    }
}
