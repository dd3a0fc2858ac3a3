//! The meeting place of one submitted call and the loop.
//!
//! One small lock for each call, held for a few instructions by either side; it decides every race between "the caller
//! left" and "the loop took it" or "the loop answered".

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use leasehold_core::{Reply, Ticket};

use crate::{Durable, SubmitError};

/// What a submitter gets.
pub(crate) type Answer = Result<Durable<Reply>, SubmitError>;

/// How far a call has come.
#[derive(Debug)]
pub(crate) enum Stage {
    /// In the queue: it can be called back, and nothing happened.
    Queued,
    /// The loop has it: what comes of it is decided there.
    Taken(Ticket),
    /// The answer lies here.
    Answered(Answer),
    /// The caller is gone.
    Left,
}

#[derive(Debug)]
struct Inner {
    stage: Stage,
    waker: Option<Waker>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Cell(Mutex<Inner>);

impl Cell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner { stage: Stage::Queued, waker: None })))
    }

    /// The submitter's side: waits for the answer.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut inner = self.lock();
        if let Stage::Answered(_) = inner.stage {
            let Stage::Answered(answer) = std::mem::replace(&mut inner.stage, Stage::Left) else {
                unreachable!()
            };
            return Poll::Ready(answer);
        }
        if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            inner.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The submitter's side: leaves, and says how far the call had come. Whatever comes later meets nobody.
    pub(crate) fn leave(&self) -> Stage {
        std::mem::replace(&mut self.lock().stage, Stage::Left)
    }

    /// The submitter's side: whether the loop has not taken it yet.
    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.lock().stage, Stage::Queued)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics while it holds a cell")
    }
}

/// The loop's side of a cell. Dropped without an answer it says so itself, so that no caller waits for a dead loop.
#[derive(Debug)]
pub(crate) struct Asker(Option<Arc<Cell>>);

impl Asker {
    pub(crate) fn new(cell: Arc<Cell>) -> Self {
        Self(Some(cell))
    }

    /// Takes the call; false if the caller has left, and then nothing may happen.
    pub(crate) fn take(&self, ticket: Ticket) -> bool {
        let Some(cell) = &self.0 else { return false };
        let mut inner = cell.lock();
        let queued = matches!(inner.stage, Stage::Queued);
        if queued {
            inner.stage = Stage::Taken(ticket);
        }
        queued
    }

    /// Answers; gives the answer back if the caller has left.
    pub(crate) fn answer(mut self, answer: Answer) -> Result<(), Answer> {
        match self.0.take() {
            Some(cell) => put(&cell, answer),
            None => Err(answer),
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if let Some(cell) = self.0.take() {
            let answer = match cell.lock().stage {
                Stage::Queued => Err(SubmitError::StoreUnavailable("the node stopped".to_owned())),
                _ => Err(SubmitError::OutcomeUnknown("the node stopped".to_owned())),
            };
            // A caller that left wants no answer.
            let _ = put(&cell, answer);
        }
    }
}

fn put(cell: &Cell, answer: Answer) -> Result<(), Answer> {
    let waker = {
        let mut inner = cell.lock();
        if matches!(inner.stage, Stage::Left) {
            return Err(answer);
        }
        inner.stage = Stage::Answered(answer);
        inner.waker.take()
    };
    // Outside the lock: the caller may run at once and look into the cell.
    if let Some(waker) = waker {
        waker.wake();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_left_is_not_taken() {
        let cell = Cell::new();
        let asker = Asker::new(Arc::clone(&cell));
        assert!(matches!(cell.leave(), Stage::Queued));
        assert!(!asker.take(Ticket(1)));
    }

    #[test]
    fn an_answer_to_nobody_comes_back() {
        let cell = Cell::new();
        let asker = Asker::new(Arc::clone(&cell));
        assert!(asker.take(Ticket(7)));
        assert!(matches!(cell.leave(), Stage::Taken(Ticket(7))));
        assert_eq!(asker.answer(Err(SubmitError::Overloaded)), Err(Err(SubmitError::Overloaded)));
    }

    #[test]
    fn a_loop_that_dies_answers_as_far_as_it_had_come() {
        let (queued, taken) = (Cell::new(), Cell::new());
        drop(Asker::new(Arc::clone(&queued)));
        let asker = Asker::new(Arc::clone(&taken));
        asker.take(Ticket(1));
        drop(asker);
        assert!(matches!(queued.leave(), Stage::Answered(Err(SubmitError::StoreUnavailable(_)))));
        assert!(matches!(taken.leave(), Stage::Answered(Err(SubmitError::OutcomeUnknown(_)))));
    }
}
