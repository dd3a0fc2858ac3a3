//! What is to happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Micros;
use crate::event::Event;

/// See the module. Events of one time happen in the order in which they were put there.
#[derive(Default)]
pub(crate) struct Timeline {
    heap: BinaryHeap<Reverse<Place>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    seq: u64,
}

/// The place of an event in time, and in `events`, as one number: comparing such numbers is most of the work here. From
/// the highest bit: 64 of the time, 40 of the order, 24 of the index.
type Place = u128;

const INDEX_BITS: u32 = 24;

impl Timeline {
    /// Puts an event at its time.
    pub(crate) fn push(&mut self, at: Micros, event: Event) {
        self.seq += 1;
        let index = self.free.pop().unwrap_or(self.events.len());
        match self.events.get_mut(index) {
            Some(free) => *free = Some(event),
            None => self.events.push(Some(event)),
        }
        self.heap.push(Reverse(place(at, self.seq, index)));
    }

    /// Takes the next event, with its time.
    pub(crate) fn pop(&mut self) -> Option<(Micros, Event)> {
        let Reverse(next) = self.heap.pop()?;
        let (at, index) = at_and_index(next);
        self.free.push(index);
        Some((at, self.events[index].take().expect("an event happens once")))
    }
}

fn place(at: Micros, seq: u64, index: usize) -> Place {
    assert!(index < 1 << INDEX_BITS && seq < 1 << 40, "a run has fewer events");
    u128::from(at) << 64 | u128::from(seq) << INDEX_BITS | index as u128
}

fn at_and_index(place: Place) -> (Micros, usize) {
    let (at, index) = (u64::try_from(place >> 64), usize::try_from(place & ((1 << INDEX_BITS) - 1)));
    (at.expect("64 bits are left"), index.expect("24 bits are left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_in_the_order_of_time_and_then_of_putting() {
        let mut timeline = Timeline::default();
        for (at, node) in [(7, 0), (u64::MAX, 1), (3, 2), (7, 3), (0, 4)] {
            timeline.push(at, Event::Start { node });
        }
        let taken: Vec<(Micros, usize)> = std::iter::from_fn(|| timeline.pop())
            .map(|(at, event)| match event {
                Event::Start { node } => (at, node),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(taken, [(0, 4), (3, 2), (7, 0), (7, 3), (u64::MAX, 1)]);
        assert_eq!(timeline.free.len(), 5, "places are used again");
    }
}
