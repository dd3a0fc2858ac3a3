//! A growing array in chunks. Growing it moves nothing, so that no command waits while a million records are copied, and
//! leaves at most one chunk half empty, where a doubling array leaves half of itself.

use std::ops::{Index, IndexMut};

/// Places of a chunk: large against what a chunk costs beside them, small against what a table holds.
const CHUNK: usize = 1_024;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Chunked<T> {
    pub(crate) fn len(&self) -> usize {
        self.chunks.split_last().map_or(0, |(last, full)| full.len() * CHUNK + last.len())
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            // The first grows as it is needed: most tables are small.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
        }
        self.chunks.last_mut().expect("one was just made sure of").push(value);
    }

    /// Puts a value at a place, after default ones where there is nothing before it yet.
    pub(crate) fn put(&mut self, place: usize, value: T)
    where
        T: Default,
    {
        while self.len() <= place {
            self.push(T::default());
        }
        self[place] = value;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<usize> for Chunked<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.chunks[place / CHUNK][place % CHUNK]
    }
}

impl<T> IndexMut<usize> for Chunked<T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_array() {
        let mut array = Chunked::default();
        let many = 2 * CHUNK + 7;
        for number in 0..many {
            assert_eq!(array.len(), number);
            array.push(number);
        }
        assert!(array.iter().copied().eq(0..many));
        array[CHUNK] = 5;
        assert_eq!((array[CHUNK - 1], array[CHUNK], array[CHUNK + 1]), (CHUNK - 1, 5, CHUNK + 1));
        array.put(many + 2, 9);
        assert_eq!((array.len(), array[many], array[many + 2]), (many + 3, 0, 9));
    }

    #[test]
    fn a_full_chunk_is_never_moved() {
        let mut array = Chunked::default();
        (0..CHUNK).for_each(|number| array.push(number));
        let before = array.chunks[0].as_ptr();
        (0..3 * CHUNK).for_each(|number| array.push(number));
        assert_eq!(array.chunks[0].as_ptr(), before);
        assert!(array.chunks[1..].iter().all(|chunk| chunk.capacity() == CHUNK));
    }
}
