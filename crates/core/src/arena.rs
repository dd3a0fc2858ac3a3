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
        let place = u32::try_from(number + 1).ok().filter(|place| *place < SECOND);
        Self::from_place(place.expect("fewer than 2^31 live leases fit into memory"))
    }

    /// What [`Ix::place`] gave.
    pub(crate) fn from_place(place: u32) -> Self {
        Self(NonZeroU32::new(place).expect("places are counted from 1"), PhantomData)
    }

    /// The place, counted from 1 and below 2^31: for records that pack it with something else.
    pub(crate) const fn place(self) -> u32 {
        self.0.get()
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

/// Set in an [`EitherIx`] of the second kind, and never in the place itself.
const SECOND: u32 = 1 << 31;

/// The place of an `A` or of a `B`, in the room of one.
pub(crate) struct EitherIx<A, B>(NonZeroU32, PhantomData<fn() -> (A, B)>);

/// What an [`EitherIx`] is.
pub(crate) enum Either<A, B> {
    First(Ix<A>),
    Second(Ix<B>),
}

impl<A, B> EitherIx<A, B> {
    pub(crate) fn first(ix: Ix<A>) -> Self {
        Self(ix.0, PhantomData)
    }

    pub(crate) fn second(ix: Ix<B>) -> Self {
        Self(ix.0 | SECOND, PhantomData)
    }

    pub(crate) fn get(self) -> Either<A, B> {
        match self.0.get() & SECOND {
            0 => Either::First(Ix::from_place(self.0.get())),
            _ => Either::Second(Ix::from_place(self.0.get() ^ SECOND)),
        }
    }
}

impl<A, B> Clone for EitherIx<A, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A, B> Copy for EitherIx<A, B> {}
impl<A, B> PartialEq for EitherIx<A, B> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<A, B> Eq for EitherIx<A, B> {}
impl<A, B> fmt::Debug for EitherIx<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Either::First(ix) => write!(f, "first {ix:?}"),
            Either::Second(ix) => write!(f, "second {ix:?}"),
        }
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
    /// How many values are live.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_compare_and_are_shown_by_their_number() {
        let (one, two) = (Ix::<()>::from_place(1), Ix::<()>::from_place(2));
        assert!(one < two && one.number() == 0 && two.place() == 2);
        let (first, second) = (EitherIx::<(), ()>::first(one), EitherIx::<(), ()>::second(two));
        assert_eq!(format!("{one:?}, {first:?}, {second:?}"), "@0, first @0, second @1");
    }
}
