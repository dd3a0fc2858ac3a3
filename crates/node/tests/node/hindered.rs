//! A journal in memory behind a gate: each append goes through it first.

use std::sync::{Arc, Condvar, Mutex};

use async_trait::async_trait;
use leasehold_journal::{
    Chained, Claim, Confirmation, Journal, Limits, MemoryJournal, OpenError, Opened, Outcome, Reader, Room,
    Writer,
};

use super::world::World;

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

/// A world whose journal can be made to get stuck, and costs no confirmations, as that on a disk.
pub(super) async fn world_behind_a_gate() -> (World, Arc<Gate>) {
    let (inner, gate) = (MemoryJournal::new(), Arc::new(Gate::default()));
    inner.set_limits(Limits { body_bytes: 1 << 20, chunk_bytes: 1 << 20, confirm_is_free: true });
    let journal = HinderedJournal { inner: inner.clone(), gate: Arc::clone(&gate) };
    (World::over(inner, Arc::new(journal), |_| {}).await, gate)
}

struct HinderedJournal {
    inner: MemoryJournal,
    gate: Arc<Gate>,
}

#[async_trait]
impl Journal for HinderedJournal {
    fn kind(&self) -> &'static str {
        "hindered"
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let opened = self.inner.open(claim).await?;
        let writer = HinderedWriter { inner: opened.writer, gate: Arc::clone(&self.gate) };
        Ok(Opened { writer: Box::new(writer), ..opened })
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        self.inner.reader().await
    }
}

struct HinderedWriter {
    inner: Box<dyn Writer>,
    gate: Arc<Gate>,
}

#[async_trait]
impl Writer for HinderedWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        self.gate.go_through();
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
