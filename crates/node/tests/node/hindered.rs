//! A journal in memory in whose way something stands: each append waits for it first.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_journal::{
    Batch, Claim, Confirmation, Journal, Limits, MemoryJournal, OpenError, Opened, Outcome, Reader, Room,
    Writer,
};

use super::world::World;

/// What each append waits for.
type Hindrance = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A gate that blocks the thread that goes through it, as a stuck disk does.
#[derive(Default)]
pub(super) struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
    pub(super) arrived: tokio::sync::watch::Sender<usize>,
}

impl Gate {
    pub(super) fn set_shut(&self, shut: bool) {
        *self.is_shut.lock().unwrap() = shut;
        self.changed.notify_all();
    }

    fn go_through(&self) {
        self.arrived.send_modify(|n| *n += 1);
        drop(self.changed.wait_while(self.is_shut.lock().unwrap(), |shut| *shut).unwrap());
    }
}

/// A world whose journal can be made to get stuck.
pub(super) async fn world_behind_a_gate() -> (World, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let through = Arc::clone(&gate);
    let hindrance: Hindrance = Arc::new(move || {
        let gate = Arc::clone(&through);
        Box::pin(async move { gate.go_through() })
    });
    (hindered_world(hindrance).await, gate)
}

/// A world whose journal takes so long for each commit.
pub(super) async fn slow_world(commit: Duration) -> World {
    hindered_world(Arc::new(move || Box::pin(tokio::time::sleep(commit)))).await
}

async fn hindered_world(hindrance: Hindrance) -> World {
    let inner = MemoryJournal::new();
    World::over(inner.clone(), Arc::new(HinderedJournal { inner, hindrance }), |_| {}).await
}

struct HinderedJournal {
    inner: MemoryJournal,
    hindrance: Hindrance,
}

#[async_trait]
impl Journal for HinderedJournal {
    fn kind(&self) -> &'static str {
        "hindered"
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let opened = self.inner.open(claim).await?;
        let writer = HinderedWriter { inner: opened.writer, hindrance: Arc::clone(&self.hindrance) };
        Ok(Opened { writer: Box::new(writer), ..opened })
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        self.inner.reader().await
    }
}

struct HinderedWriter {
    inner: Box<dyn Writer>,
    hindrance: Hindrance,
}

#[async_trait]
impl Writer for HinderedWriter {
    async fn append(&mut self, batch: &Batch) -> Outcome {
        (self.hindrance)().await;
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
