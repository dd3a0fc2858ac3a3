//! The mistakes, as a journal around a real one.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_journal::{
    Batch, Chained, Claim, Confirmation, Journal, Limits, OpenError, Opened, Outcome, Reader, Room, Tail,
    Writer,
};
use leasehold_types::Epoch;

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// Says yes when asked whether the epoch is still ours (against J7).
    ConfirmsBlindly,
    /// Takes an append without an answer for committed (against J2).
    Believes,
    /// Sends a batch without an answer again, as a new one after whatever the tail is by then (against J3).
    Reproposes,
}

impl Mistake {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "confirms-blindly" => Self::ConfirmsBlindly,
            "believes" => Self::Believes,
            "reproposes" => Self::Reproposes,
            other => panic!("no mistake is called {other}"),
        }
    }
}

/// A real journal with a mistake in its writer.
pub(crate) struct NaiveJournal {
    real: Arc<dyn Journal>,
    mistake: Mistake,
}

impl NaiveJournal {
    pub(crate) fn around(real: Arc<dyn Journal>, mistake: Mistake) -> Arc<dyn Journal> {
        Arc::new(Self { real, mistake })
    }
}

#[async_trait]
impl Journal for NaiveJournal {
    fn kind(&self) -> &'static str {
        self.real.kind()
    }

    async fn open(&self, claim: Claim) -> Result<Opened, OpenError> {
        let mut opened = self.real.open(claim).await?;
        let reader = self.real.reader().await?;
        let (mistake, epoch, tail) = (self.mistake, opened.epoch, opened.tail);
        opened.writer = Box::new(NaiveWriter { real: opened.writer, reader, mistake, epoch, tail });
        Ok(opened)
    }

    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError> {
        self.real.reader().await
    }
}

struct NaiveWriter {
    real: Box<dyn Writer>,
    reader: Box<dyn Reader>,
    mistake: Mistake,
    epoch: Epoch,
    /// Where the chain really ends, which the node no longer knows once a batch was placed elsewhere.
    tail: Tail,
}

impl NaiveWriter {
    /// Appends behind the real tail, whatever slot the node thinks of.
    async fn append_behind(&mut self, batch: &Batch) -> Outcome {
        let placed = Batch { slot: self.tail.slot.next(), prev_hash: self.tail.hash, ..batch.clone() };
        let placed = Chained::new(placed, self.epoch);
        let outcome = self.real.append(&placed).await;
        if outcome == Outcome::Committed {
            self.tail = placed.tail();
        }
        outcome
    }
}

#[async_trait]
impl Writer for NaiveWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        let outcome = self.append_behind(batch).await;
        match (self.mistake, &outcome) {
            (Mistake::Believes, Outcome::Unknown(_)) => Outcome::Committed,
            (Mistake::Reproposes, Outcome::Unknown(_)) => match self.reader.head().await {
                Ok(head) => {
                    self.tail = head.tail;
                    self.append_behind(batch).await
                }
                Err(_) => outcome,
            },
            _ => outcome,
        }
    }

    async fn confirm(&mut self) -> Confirmation {
        match self.mistake {
            Mistake::ConfirmsBlindly => Confirmation::Current,
            _ => self.real.confirm().await,
        }
    }

    async fn beat(&mut self) -> Outcome {
        match self.mistake {
            // It feels well, so it sees no need to ask.
            Mistake::ConfirmsBlindly => {
                let _ = tokio::time::timeout(std::time::Duration::from_millis(500), self.real.beat()).await;
                Outcome::Committed
            }
            _ => self.real.beat().await,
        }
    }

    fn limits(&self) -> Limits {
        self.real.limits()
    }

    fn room(&self) -> Room {
        self.real.room()
    }
}
