//! The order of requests: who may be sent now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::flights::{Entry, Flight, Flights, Note};
use super::tally::Tally;
use crate::http::Failure;
use crate::{Fence, FenceError, Grant};

/// How often a request that must wait asks again, when nobody in this process says that it may go.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The longest time between two beats.
const BEAT: Duration = Duration::from_secs(1);

/// Requests with a lower token are still in flight, and the caller's patience is at its end.
#[derive(Debug, thiserror::Error)]
#[error("requests with a lower token are still in flight")]
pub(super) struct Closed;

/// Lets a request through only when every request with a lower token has been answered, or has been in doubt for the
/// whole drain time.
pub(super) struct Gate {
    pub(super) flights: Box<dyn Flights>,
    pub(super) drain: Duration,
    pub(super) tally: Arc<Tally>,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    /// The requests of this process.
    own: BTreeSet<Flight>,
    /// Those whose notes are to be removed as soon as the store can be reached.
    leaving: BTreeSet<Flight>,
    /// When the beat of somebody's request was last seen to move.
    seen: BTreeMap<Flight, (u64, Instant)>,
}

impl Gate {
    pub(super) fn new(flights: Box<dyn Flights>, drain: Duration, tally: Arc<Tally>) -> Self {
        Self { flights, drain, tally, state: Mutex::default(), left: Notify::new() }
    }

    /// Waits for its turn and notes the request. `gone` tells that nobody waits for the answer any more.
    ///
    /// If the future is dropped, a note may stay for the drain time.
    pub(super) async fn enter(
        &self,
        fence: &Fence,
        grant: &Grant,
        patience: Duration,
        gone: impl Fn() -> bool,
    ) -> Result<Flight, FenceError<Failure>> {
        let (flight, until) = (Flight::draw(), Instant::now() + patience);
        loop {
            let left = self.left.notified();
            let begun = Instant::now();
            // Beating from before it is noted: nobody may take it for dead meanwhile.
            self.state().own.insert(flight.clone());
            let entry = self.flights.enter(fence, grant, &flight).await;
            match entry {
                // This process slept: by now others may have given the request up for dead.
                Ok(Entry::Entered) if begun.elapsed() > self.drain / 2 => self.leave(&flight).await,
                Ok(Entry::Entered) => return Ok(flight),
                // A lost answer may have left a note.
                Err(FenceError::Store(error)) => {
                    self.leave(&flight).await;
                    return Err(FenceError::Store(error));
                }
                Ok(Entry::Behind) | Err(_) => {
                    self.state().own.remove(&flight);
                    entry?;
                }
            }
            if gone() || Instant::now() >= until {
                return Err(FenceError::Store(Box::new(Closed)));
            }
            let _ = tokio::time::timeout(ASK_AGAIN, left).await;
        }
    }

    /// The request has been answered, or was never sent. When the store is out of reach, its note is removed later.
    pub(super) async fn leave(&self, flight: &Flight) {
        let left = self.flights.leave(flight).await;
        let mut state = self.state();
        state.own.remove(flight);
        match left {
            Ok(()) => state.leaving.remove(flight),
            Err(_) => state.leaving.insert(flight.clone()),
        };
        drop(state);
        self.left.notify_waiters();
    }

    /// The service may still be at work on it: it keeps the resource closed for the drain time.
    pub(super) async fn doubt(&self, fence: &Fence, grant: &Grant, flight: &Flight) {
        self.tally.in_doubt.add(1);
        tokio::time::sleep(self.drain).await;
        self.tally.in_doubt.sub(1);
        self.order_unknown(fence.name().as_str(), grant.token().get());
        self.leave(flight).await;
    }

    /// Beats for the requests of this process, and gives up on those of proxies that beat no more. Never ends.
    pub(super) async fn keep(&self) {
        let mut beats = tokio::time::interval(BEAT.min(self.drain / 4).max(Duration::from_millis(5)));
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            let own: Vec<Flight> = self.state().own.iter().cloned().collect();
            if !own.is_empty() && self.flights.beat(&own).await.is_err() {
                continue;
            }
            let leaving: Vec<Flight> = self.state().leaving.iter().cloned().collect();
            for flight in &leaving {
                self.leave(flight).await;
            }
            let Ok(notes) = self.flights.notes().await else { continue };
            for dead in self.dead(&notes) {
                self.order_unknown(dead.fence.as_str(), dead.token.get());
                self.leave(&dead.flight).await;
            }
        }
    }

    /// The notes of others whose beat has not moved for the drain time, by this process's clock.
    fn dead(&self, notes: &[Note]) -> Vec<Note> {
        let (now, mut state) = (Instant::now(), self.state());
        let State { own, seen, .. } = &mut *state;
        seen.retain(|flight, _| notes.iter().any(|note| note.flight == *flight));
        let is_dead = |note: &&Note| {
            let (beat, since) = seen.entry(note.flight.clone()).or_insert((note.beat, now));
            if *beat != note.beat {
                (*beat, *since) = (note.beat, now);
            }
            !own.contains(&note.flight) && now.duration_since(*since) >= self.drain
        };
        notes.iter().filter(is_dead).cloned().collect()
    }

    fn order_unknown(&self, resource: &str, token: u64) {
        self.tally.order_unknown.add(1);
        tracing::error!(
            event = "fence_order_unknown",
            resource,
            token,
            "a request was never answered; if the service still does it, it does it out of order"
        );
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
