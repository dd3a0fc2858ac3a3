//! Where the resources are that were found last, by the tags of their keys: whoever has asked whether a lock is free takes it next,
//! and gives it back soon. It only saves looks at the order, and knows nothing that is not there.

use std::cell::Cell;

use super::State;

/// So many are remembered, in 128 KiB: far more than a busy node is asked for at the same time. Tests have few, so that many names
/// meet in one.
const PLACES: usize = if cfg!(test) { 4 } else { 16_384 };

/// See the module. Whatever it has of a key is the state that the order has of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lately {
    /// None before the first.
    places: Vec<Cell<Found>>,
}

/// A tag, and the state of a resource whose key has it.
type Found = (u32, Option<State>);

impl Lately {
    /// The state of the resource that was last found by this tag. There are others with the same tag.
    pub(super) fn get(&self, tag: u32) -> Option<State> {
        let (of, state) = self.place(tag)?.get();
        state.filter(|_| of == tag)
    }

    /// This one was found now.
    pub(super) fn note(&self, tag: u32, state: State) {
        if let Some(place) = self.place(tag) {
            place.set((tag, Some(state)));
        }
    }

    /// A resource with this tag has come.
    pub(super) fn begin(&mut self, tag: u32, state: State) {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, Cell::default);
        }
        self.note(tag, state);
    }

    /// A resource with this tag has another state now, or is no more.
    pub(super) fn change(&self, tag: u32, from: State, to: Option<State>) {
        if let Some(place) = self.place(tag)
            && self.get(tag) == Some(from)
        {
            place.set((tag, to));
        }
    }

    fn place(&self, tag: u32) -> Option<&Cell<Found>> {
        self.places.get(tag as usize % PLACES)
    }
}
