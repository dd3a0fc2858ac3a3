//! A journal in memory whose appends can be made to take for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use leasehold_journal::{
    Batch, Claim, Confirmation, ImportError, Journal, Limits, MemoryJournal, OpenError, Opened, Outcome,
    Reader, Room, Tail, Writer,
};
use leasehold_types::Durability;
use tokio::sync::Semaphore;

pub(crate) struct StuckJournal {
    inner: MemoryJournal,
    stuck: Arc<AtomicBool>,
    reached: Arc<Semaphore>,
}

impl Default for StuckJournal {
    fn default() -> Self {
        Self {
            inner: MemoryJournal::with_durability(Durability::Durable),
            stuck: Arc::default(),
            reached: Arc::new(Semaphore::new(0)),
        }
    }
}

impl StuckJournal {
    /// From now on no append comes back.
    pub(crate) fn stick(&self) {
        self.stuck.store(true, Ordering::SeqCst);
    }

    /// Waits until an append does not come back.
    pub(crate) async fn until_stuck(&self) {
        drop(self.reached.acquire().await.expect("the semaphore is never closed"));
    }
}

#[async_trait]
impl Journal for StuckJournal {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let opened = self.inner.open(claim).await?;
        let (stuck, reached) = (Arc::clone(&self.stuck), Arc::clone(&self.reached));
        Ok(Opened { writer: Box::new(StuckWriter { inner: opened.writer, stuck, reached }), ..opened })
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        self.inner.reader().await
    }

    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        self.inner.import(from).await
    }
}

struct StuckWriter {
    inner: Box<dyn Writer>,
    stuck: Arc<AtomicBool>,
    reached: Arc<Semaphore>,
}

#[async_trait]
impl Writer for StuckWriter {
    async fn append(&mut self, batch: &Batch) -> Outcome {
        if self.stuck.load(Ordering::SeqCst) {
            self.reached.add_permits(1);
            std::future::pending::<()>().await;
        }
        self.inner.append(batch).await
    }

    async fn confirm(&mut self) -> Confirmation {
        self.inner.confirm().await
    }

    async fn beat(&mut self) -> Outcome {
        self.inner.beat().await
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn room(&self) -> Room {
        self.inner.room()
    }
}
