//! In memory, for tests and for looking: refused once a stage rejects.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Answer, Entry, Flight, Flights, Note};
use crate::http::{Failure, Maximum};
use crate::{Fence, FenceError, Grant, Row, Verdict, decide_claim};

/// Forgets everything with the process.
#[derive(Debug, Default)]
pub struct MemoryFlights(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<(String, i64), Row>,
    notes: BTreeMap<Flight, (i64, Note)>,
}

impl State {
    fn claim(&mut self, fence: &Fence, grant: &Grant) -> Result<(), FenceError<Failure>> {
        let key = (fence.name().to_string(), grant.row_number());
        match decide_claim(fence, self.rows.get(&key), grant) {
            Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
            Verdict::Admitted(next) => {
                self.rows.extend(next.map(|row| (key, row)));
                Ok(())
            }
        }
    }

    fn enter(&mut self, fence: &Fence, grant: &Grant, flight: &Flight) -> Result<Entry, FenceError<Failure>> {
        self.claim(fence, grant)?;
        let lower = |(permit, note): &(i64, Note)| {
            *permit == grant.row_number() && note.fence == *fence.name() && note.token < grant.token()
        };
        if self.notes.values().any(lower) {
            return Ok(Entry::Behind);
        }
        let (fence, token) = (fence.name().clone(), grant.token());
        let note = Note { flight: flight.clone(), fence, token, beat: 0 };
        self.notes.insert(flight.clone(), (grant.row_number(), note));
        Ok(Entry::Entered)
    }
}

impl MemoryFlights {
    fn with<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, FenceError<Failure>>,
    ) -> Answer<'a, T> {
        let done = act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(done))
    }
}

impl Maximum for MemoryFlights {
    fn is_durable(&self) -> bool {
        false
    }

    fn advance<'a>(&'a self, fence: &'a Fence, grant: &'a Grant) -> Answer<'a, ()> {
        self.with(|state| state.claim(fence, grant))
    }
}

impl Flights for MemoryFlights {
    fn enter<'a>(&'a self, fence: &'a Fence, grant: &'a Grant, flight: &'a Flight) -> Answer<'a, Entry> {
        self.with(|state| state.enter(fence, grant, flight))
    }

    fn leave<'a>(&'a self, flight: &'a Flight) -> Answer<'a, ()> {
        self.with(|state| {
            state.notes.remove(flight);
            Ok(())
        })
    }

    fn beat<'a>(&'a self, flights: &'a [Flight]) -> Answer<'a, ()> {
        self.with(|state| {
            let ours = state.notes.iter_mut().filter(|(flight, _)| flights.contains(flight));
            ours.for_each(|(_, (_, note))| note.beat += 1);
            Ok(())
        })
    }

    fn notes(&self) -> Answer<'_, Vec<Note>> {
        self.with(|state| Ok(state.notes.values().map(|(_, note)| note.clone()).collect()))
    }
}
