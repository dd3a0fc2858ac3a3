//! A growing array whose free places are used again: a lease or session is named by a 4-byte index instead of its
//! 16-byte id wherever the table points at it. Indices are not stable across replays, so nothing visible may depend on
//! their order.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

use crate::chunked::Chunked;

/// The place of a `T` in its arena, counted from 1 so that an optional one needs no more room.
pub(crate) struct Ix<T>(NonZeroU32, PhantomData<fn() -> T>);

impl<T> Ix<T> {
    fn at(number: usize) -> Self {
        let place = u32::try_from(number + 1).ok().and_then(NonZeroU32::new);
        Self(place.expect("fewer than 2^32 live leases fit into memory"), PhantomData)
    }

    pub(crate) const fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<T> Clone for Ix<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ix<T> {}
impl<T> PartialEq for Ix<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Ix<T> {}
impl<T> PartialOrd for Ix<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Ix<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T> fmt::Debug for Ix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.number())
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Arena<T> {
    places: Chunked<Option<T>>,
    free: Vec<Ix<T>>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { places: Chunked::default(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    pub(crate) fn insert(&mut self, value: T) -> Ix<T> {
        if let Some(ix) = self.free.pop() {
            self.places[ix.number()] = Some(value);
            return ix;
        }
        self.places.push(Some(value));
        Ix::at(self.places.len() - 1)
    }

    pub(crate) fn remove(&mut self, ix: Ix<T>) -> T {
        let value = self.places[ix.number()].take().expect("an index names a live value");
        self.free.push(ix);
        value
    }

    pub(crate) fn get(&self, ix: Ix<T>) -> &T {
        self.places[ix.number()].as_ref().expect("an index names a live value")
    }

    pub(crate) fn get_mut(&mut self, ix: Ix<T>) -> &mut T {
        self.places[ix.number()].as_mut().expect("an index names a live value")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ix<T>, &T)> {
        let live = |(number, value): (usize, &'_ Option<T>)| value.is_some().then_some(number);
        let numbers = self.places.iter().enumerate().filter_map(live);
        numbers.map(|number| (Ix::at(number), self.get(Ix::at(number))))
    }
}
