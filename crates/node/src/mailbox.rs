//! Where the answers for one [`crate::Lane`] lie until it fetches them, and the batches that it sends.
//!
//! One lock for each lane, held for a few instructions by either side: the loop takes it once for every run of answers
//! to the same lane, the lane once for everything that lies there.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use leasehold_types::TenantName;

use crate::cell::Answer;
use crate::{Call, StopReason, SubmitError, Trail};

/// An answer, and the lane's own number of the call.
pub(crate) type Letter = (u32, Answer);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    /// Whether its lane lives on the loop's own thread.
    is_beside: bool,
}

#[derive(Debug, Default)]
struct Inner {
    letters: Vec<Letter>,
    waker: Option<Waker>,
    /// The lane is gone: nothing put here would ever be read.
    closed: bool,
}

impl Mailbox {
    pub(crate) fn new(is_beside: bool) -> Self {
        Self { inner: Mutex::default(), is_beside }
    }

    /// The loop's side: puts letters here without waking anybody, and leaves `letters` empty; or leaves them if the lane
    /// is gone.
    pub(crate) fn put(&self, letters: &mut Vec<Letter>) {
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        if inner.letters.is_empty() {
            std::mem::swap(&mut inner.letters, letters);
        } else {
            inner.letters.append(letters);
        }
    }

    /// The loop's side: wakes the lane, once for all that was put here.
    pub(crate) fn wake(&self) {
        let waker = {
            let mut inner = self.lock();
            if inner.letters.is_empty() { None } else { inner.waker.take() }
        };
        // Outside the lock: the lane may run at once and look in.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The lane's side: swaps what lies here with `letters`, which must be empty.
    pub(crate) fn poll(&self, cx: &mut Context<'_>, letters: &mut Vec<Letter>) -> Poll<()> {
        let mut inner = self.lock();
        if !inner.letters.is_empty() {
            std::mem::swap(&mut inner.letters, letters);
            return Poll::Ready(());
        }
        if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            inner.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The lane's side: leaves, and takes what still lies here.
    pub(crate) fn close(&self) -> Vec<Letter> {
        let mut inner = self.lock();
        inner.closed = true;
        std::mem::take(&mut inner.letters)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics while it holds a mailbox")
    }
}

/// How far a batch has come. Its lane and the loop decide with it who was first: one can be called back as long as the
/// loop has not taken it.
#[derive(Debug, Default)]
pub(crate) struct Passage(AtomicU8);

const QUEUED: u8 = 0;
const TAKEN: u8 = 1;
const LEFT: u8 = 2;

impl Passage {
    /// The loop takes the batch; false if it was called back, and then nothing may happen.
    pub(crate) fn take(&self) -> bool {
        self.end(TAKEN)
    }

    /// The lane calls the batch back; false if the loop has it.
    pub(crate) fn leave(&self) -> bool {
        self.end(LEFT)
    }

    /// Whether the loop has taken it.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) == TAKEN
    }

    fn end(&self, with: u8) -> bool {
        self.0.compare_exchange(QUEUED, with, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A call of a lane, with its number there, and where it is noted how it fares.
pub(crate) type BatchedCall = (u32, Call, Option<Arc<Trail>>);

/// The calls that a lane sends at once. Dropped before it was taken it answers for the dead loop.
#[derive(Debug)]
pub(crate) struct CallBatch {
    calls: Vec<BatchedCall>,
    mailbox: Arc<Mailbox>,
    passage: Arc<Passage>,
}

impl CallBatch {
    pub(crate) fn new(calls: Vec<BatchedCall>, mailbox: Arc<Mailbox>, passage: Arc<Passage>) -> Self {
        Self { calls, mailbox, passage }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether they come from somebody beside the loop.
    pub(crate) fn is_from_beside(&self) -> bool {
        self.mailbox.is_beside
    }

    /// Whose calls they are: a lane is one caller's.
    pub(crate) fn tenant(&self) -> Option<&TenantName> {
        self.calls.first().map(|(_, call, _)| &call.tenant)
    }

    /// Cuts it after so many calls, and gives the rest. The loop has both parts then: neither can be called back, and one
    /// that was called back is not cut.
    pub(crate) fn cut_after(&mut self, calls: usize) -> Option<Self> {
        if self.calls.len() <= calls || !self.passage.take() {
            return None;
        }
        self.passage = Arc::default();
        let rest = self.calls.split_off(calls);
        Some(Self::new(rest, Arc::clone(&self.mailbox), Arc::default()))
    }

    /// Takes the calls with the way back to each; none if the batch was called back.
    pub(crate) fn take(mut self) -> (Vec<BatchedCall>, Arc<Mailbox>) {
        let calls = std::mem::take(&mut self.calls);
        let is_here = self.passage.take();
        (if is_here { calls } else { Vec::new() }, Arc::clone(&self.mailbox))
    }

    /// Answers that nothing happened, and why.
    pub(crate) fn turn_away(mut self, reason: &StopReason) {
        self.refuse(&reason.nothing_happened());
    }

    fn refuse(&mut self, error: &SubmitError) {
        let calls = std::mem::take(&mut self.calls);
        if !calls.is_empty() && self.passage.take() {
            self.mailbox.put(&mut calls.into_iter().map(|(place, ..)| (place, Err(error.clone()))).collect());
            self.mailbox.wake();
        }
    }
}

impl Drop for CallBatch {
    fn drop(&mut self) {
        self.refuse(&SubmitError::StoreUnavailable("the node stopped".to_owned()));
    }
}

/// The way back to one call of a lane. Dropped without an answer it says so itself, so that no caller waits for a dead
/// loop.
#[derive(Debug)]
pub(crate) struct Place {
    mailbox: Option<Arc<Mailbox>>,
    number: u32,
}

impl Place {
    pub(crate) fn new(mailbox: Arc<Mailbox>, number: u32) -> Self {
        Self { mailbox: Some(mailbox), number }
    }

    /// Whether this is a place of that mailbox, and of that call if one is named.
    pub(crate) fn is_in(&self, mailbox: &Arc<Mailbox>, number: Option<u32>) -> bool {
        let same = self.mailbox.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, mailbox));
        same && number.is_none_or(|number| number == self.number)
    }

    /// Answers with an error at once.
    pub(crate) fn refuse(mut self, error: SubmitError) {
        if let Some(mailbox) = self.mailbox.take() {
            answer_now(&mailbox, self.number, error);
        }
    }

    /// The mailbox and the number, to be answered there.
    pub(crate) fn into_parts(mut self) -> Option<(Arc<Mailbox>, u32)> {
        Some((self.mailbox.take()?, self.number))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mailbox) = self.mailbox.take() {
            answer_now(&mailbox, self.number, SubmitError::OutcomeUnknown("the node stopped".to_owned()));
        }
    }
}

fn answer_now(mailbox: &Mailbox, number: u32, error: SubmitError) {
    mailbox.put(&mut vec![(number, Err(error))]);
    mailbox.wake();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::release;

    fn letters(mailbox: &Mailbox) -> Vec<Letter> {
        mailbox.close()
    }

    fn batch() -> (CallBatch, Arc<Mailbox>, Arc<Passage>) {
        let (mailbox, passage) = (Arc::new(Mailbox::default()), Arc::new(Passage::default()));
        let calls = vec![(0, release(1), None), (1, release(2), None)];
        (CallBatch::new(calls, Arc::clone(&mailbox), Arc::clone(&passage)), mailbox, passage)
    }

    #[test]
    fn a_batch_that_was_called_back_is_not_taken() {
        let (batch, mailbox, passage) = batch();
        assert!(passage.leave());
        assert!(batch.take().0.is_empty());
        assert!(letters(&mailbox).is_empty());
    }

    #[test]
    fn a_batch_that_was_taken_cannot_be_called_back() {
        let (batch, _, passage) = batch();
        assert_eq!(batch.take().0.len(), 2);
        assert!(passage.is_taken() && !passage.leave());
    }

    #[test]
    fn a_loop_that_dies_answers_as_far_as_it_had_come() {
        let (queued, mailbox, _) = batch();
        drop(queued);
        let untaken = letters(&mailbox);
        assert_eq!(untaken.len(), 2);
        assert!(untaken.iter().all(|(_, answer)| matches!(answer, Err(SubmitError::StoreUnavailable(_)))));

        let mailbox = Arc::new(Mailbox::default());
        drop(Place::new(Arc::clone(&mailbox), 7));
        assert!(matches!(&letters(&mailbox)[..], [(7, Err(SubmitError::OutcomeUnknown(_)))]));
    }

    #[test]
    fn a_batch_is_cut_once_the_loop_has_it_and_each_part_is_answered() {
        let (mut first, mailbox, passage) = batch();
        assert!(first.cut_after(2).is_none(), "there is nothing to cut off");
        let rest = first.cut_after(1).unwrap();
        assert!(passage.is_taken() && !passage.leave());
        assert_eq!(first.take().0.len(), 1);
        drop(rest);
        assert!(matches!(&letters(&mailbox)[..], [(1, Err(SubmitError::StoreUnavailable(_)))]));

        let (mut gone, mailbox, passage) = batch();
        assert!(passage.leave());
        assert!(gone.cut_after(1).is_none() && gone.take().0.is_empty());
        assert!(letters(&mailbox).is_empty(), "one that was called back is answered already");
    }

    #[test]
    fn letters_to_a_lane_that_is_gone_come_back() {
        let mailbox = Mailbox::default();
        mailbox.close();
        let mut letters = vec![(1, Err(SubmitError::Overloaded))];
        mailbox.put(&mut letters);
        assert_eq!(letters.len(), 1);
    }
}
