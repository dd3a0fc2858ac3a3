//! One request under way, as its caller sees it.

use std::pin::Pin;
use std::task::{Context, Poll};

use leasehold_proto::v1::request::Ask;

use super::places::{Caller, Told};
use super::wire::{Wire, wake};
use crate::clock;
use crate::deadline::Stamp;

/// See [`Wire::asking`].
pub(crate) struct Asking<'a, D> {
    wire: &'a Wire,
    stage: Stage,
    /// Waits no longer than this says.
    deadline: D,
}

enum Stage {
    /// Nothing was asked yet; an acquire says how long it waits in the queue.
    Begun(Ask, Option<Stamp>),
    /// Asked under this number.
    Asked(u64),
    Done,
}

impl<'a, D> Asking<'a, D> {
    pub(super) fn new(wire: &'a Wire, ask: Ask, wait_until: Option<Stamp>, deadline: D) -> Self {
        Self { wire, stage: Stage::Begun(ask, wait_until), deadline }
    }
}

impl<D: Fn() -> Stamp + Unpin> Asking<'_, D> {
    fn begin(&mut self, ask: Ask, wait_until: Option<Stamp>, cx: &Context<'_>) -> Poll<Option<Told>> {
        let caller = Caller { waker: cx.waker().clone(), deadline: (self.deadline)() };
        let mut state = self.wire.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(Some(Err(end.clone())));
        }
        self.stage = Stage::Asked(self.wire.put(&mut state, ask, wait_until, Some(caller)));
        wake(state);
        Poll::Pending
    }

    fn look(&mut self, number: u64, cx: &Context<'_>) -> Poll<Option<Told>> {
        let told = self.wire.lock().places.take(number);
        if told.is_some() {
            self.stage = Stage::Done;
            return Poll::Ready(told);
        }
        let deadline = (self.deadline)();
        if clock::now() >= deadline {
            return Poll::Ready(None);
        }
        let mut state = self.wire.lock();
        let told = state.places.take(number);
        if told.is_some() {
            self.stage = Stage::Done;
            return Poll::Ready(told);
        }
        let useless = state.places.wait_on(number, Caller { waker: cx.waker().clone(), deadline });
        self.wire.watch(&mut state, deadline);
        drop(state);
        drop(useless);
        Poll::Pending
    }
}

impl<D: Fn() -> Stamp + Unpin> Future for Asking<'_, D> {
    type Output = Option<Told>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Begun(ask, wait_until) => self.begin(ask, wait_until, cx),
            Stage::Asked(number) => {
                self.stage = Stage::Asked(number);
                self.look(number, cx)
            }
            Stage::Done => panic!("polled after it was done"),
        }
    }
}

impl<D> Drop for Asking<'_, D> {
    fn drop(&mut self) {
        if let Stage::Asked(number) = self.stage {
            let forgotten = self.wire.lock().places.forget(number);
            drop(forgotten);
        }
    }
}
